import type { Plan } from './code.js';

/** The images of which an operator's is built; Node's major version is the one that this package is tested with. */
export const BUILD_IMAGE = 'node:24.21.0-trixie-slim';
export const BASE_IMAGE = 'gcr.io/distroless/nodejs24-debian13:nonroot';

/** With which `run` need not begin itself anew. */
const NODE_FLAGS = ['--max-semi-space-size=4', '--heap-growing-percent=20', '--expose-gc'];

/** @param vendored a folder of packages that the lock file names. @default - there is none */
export function dockerfile({ library }: Plan, vendored?: string): string {
  const entrypoint = [
    '/nodejs/bin/node',
    ...NODE_FLAGS,
    `/app/node_modules/${library}/lib/bundle/reconstruct.mjs`,
  ];
  return `# The operator on a distroless Node: no shell, no package manager.
# On the machine's own platform: what is installed is the same for all.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
${vendored === undefined ? '' : `COPY ${vendored} ${vendored}\n`}RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${BASE_IMAGE}
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY package.json reconstruct.config.mjs ./
COPY src src
ENV MALLOC_ARENA_MAX=1
USER 65532:65532
ENTRYPOINT [${entrypoint.map((word) => JSON.stringify(word)).join(', ')}]
CMD ["run"]
`;
}

/** Nothing is sent to the builder but what is copied. */
export function dockerignore(vendored?: string): string {
  const kept = [
    'package.json',
    'package-lock.json',
    'reconstruct.config.mjs',
    'src',
    ...(vendored ? [vendored] : []),
  ];
  return `*\n${kept.map((path) => `!${path}\n`).join('')}`;
}
