import { writeYaml } from '../../contract/yaml.js';
import { configModule, constructModule, crdModule, kindModule } from './code.js';
import type { Plan } from './code.js';
import { VENDOR } from './dependency.js';
import type { Dependency } from './dependency.js';
import { fieldsOf } from './fields.js';
import { packageManifest } from './manifest.js';
import type { PackageManifest } from './manifest.js';
import { operatorTest, SNAPSHOT_TEST, snapshotTest, sweepProgram } from './tests.js';

/** Files by their paths below the project. */
export type Files = Readonly<Record<string, string | Buffer>>;

/** All files of a project but its snapshot, which is recorded with them. */
export function projectFiles(plan: Plan, { spec, tarball }: Dependency, earlier?: PackageManifest): Files {
  const { file } = plan.names;
  const vendored = tarball && VENDOR;
  return {
    '.dockerignore': dockerignore(vendored),
    '.gitignore': 'node_modules/\ndist/\n',
    Dockerfile: dockerfile(plan, vendored),
    'README.md': readme(plan, tarball !== undefined),
    'package.json': json(packageManifest(plan, spec, earlier)),
    'reconstruct.config.mjs': configModule(plan),
    'tsconfig.json': json(TSCONFIG),
    [`samples/${file}.yaml`]: sampleText(plan),
    'src/crd.ts': crdModule(plan),
    [`src/${file}.ts`]: constructModule(plan),
    'src/kind.ts': kindModule(plan),
    [SNAPSHOT_TEST]: snapshotTest(plan),
    'test/operator.test.ts': operatorTest(plan),
    'test/sweep.ts': sweepProgram(plan),
    ...(tarball && { [`${VENDOR}/${tarball.name}`]: tarball.content }),
  };
}

/** For sources that Node runs as they are, by leaving out the types. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  },
  include: ['src', 'test'],
};

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The images of which an operator's is built; Node's major version is the one that this package is tested with. */
const BUILD_IMAGE = 'node:24.21.0-trixie-slim';
const BASE_IMAGE = 'gcr.io/distroless/nodejs24-debian13:nonroot';

/** With which `run` need not begin itself anew. */
const NODE_FLAGS = ['--max-semi-space-size=4', '--heap-growing-percent=20', '--expose-gc'];

/** @param vendored a folder of packages that the lock file names. @default - there is none */
function dockerfile({ library }: Plan, vendored?: string): string {
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
function dockerignore(vendored?: string): string {
  const kept = [
    'package.json',
    'package-lock.json',
    'reconstruct.config.mjs',
    'src',
    ...(vendored ? [vendored] : []),
  ];
  return `*\n${kept.map((path) => `!${path}\n`).join('')}`;
}

/** @param isVendored whether a packed file comes with the project */
function readme({ names, design, library }: Plan, isVendored: boolean): string {
  const { project, kind, file, group } = names;
  const plural = design.children.length === 1 ? 'a' : 'these objects:';
  const made =
    design.children.length === 1 ? ` ${design.children[0] ?? ''}` : ` ${design.children.join(', ')}`;
  const rows = [
    ['file', 'holds'],
    ['`src/crd.ts`', 'what users may write: the schema, and the columns of `kubectl get`'],
    [`\`src/${file}.ts\``, `the construct: what one ${kind} is turned into`],
    ['`src/kind.ts`', 'the two tied together, and the kinds of objects that the construct may make'],
    ['`reconstruct.config.mjs`', 'what the command `reconstruct` loads'],
    ['`samples/`', `a ${kind} to try, which the tests take too`],
    ['`test/`', 'the snapshot, the operator on a real API server, and the sweep'],
    ...(isVendored ? [[`\`${VENDOR}/\``, `${library}, packed`]] : []),
  ];
  return `# ${project}

A Kubernetes operator for the kind \`${kind}\` of \`${group}/v1\`. A ${kind} stands for ${plural}${made}. The operator makes them, puts
them right when somebody changes them, and takes away what isn't asked for any more.

${table(rows)}

Node 22.19 or newer is needed; there is nothing to compile. The control plane of tests and \`dev\` is built once, with
[Go](https://go.dev/dl), which takes some minutes.

\`\`\`sh
npm install
npm run typecheck
npm test                # the snapshot, and the operator on a control plane of its own
npm run snapshots       # after a change that is meant: look at the difference, and commit it
npm run synth           # the sample's objects, without a cluster
npm run dev             # a control plane with the sample; everything is loaded again on save
npm run sweep           # kills, drifts, starves and edits it; tells what doesn't hold. Two minutes
npm run sweep -- status # one check alone
npm run sweep -- walk --seed 705919 # the same walk again, by the seed that the report tells
\`\`\`

To a cluster:

\`\`\`sh
export IMAGE=registry.example.com/${project}:0.1.0
npm run image && docker push $IMAGE
npm run manifests # dist/reconstruct.yaml: the CRD, the operator, and the rights that it needs and no others
kubectl apply --server-side -f dist/reconstruct.yaml
kubectl apply -f samples/${file}.yaml
kubectl wait --for=condition=Ready -f samples/${file}.yaml
\`\`\`
`;
}

/** In Markdown, its columns in line. */
function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

/** A custom resource that leads to everything that the kind makes. */
function sampleText({ names, design }: Plan): string {
  const given = fieldsOf(design, names).filter(({ sample }) => sample !== undefined);
  return writeYaml({
    apiVersion: `${names.group}/v1`,
    kind: names.kind,
    metadata: { name: 'hello' },
    spec: Object.fromEntries(given.map(({ name, sample }) => [name, sample])),
  });
}
