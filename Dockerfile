# The controller and the command, in one file on a distroless Node: no shell, no package manager, no node_modules.
# Base images are pinned by tag here and by digest in a release, which looks the digests up and records them.
ARG BUILD_IMAGE=node:24.21.0-trixie-slim
ARG BASE_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot

# On the machine's own platform: what it makes is the same for all.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
COPY runtime/package.json runtime/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.base.json ./
COPY src src
COPY crds crds
COPY charts charts
COPY scripts scripts
RUN npm run image:bundle

FROM ${BASE_IMAGE}
ARG VERSION=0.0.0
LABEL org.opencontainers.image.title="reconstruct" \
      org.opencontainers.image.description="Write a cdk8s construct, get a Kubernetes operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build --chmod=0555 /src/lib/image/reconstruct.mjs /app/reconstruct.mjs
# V8 and glibc read these when a process starts: docs/decisions/0017-bundle-and-memory.md.
ENV MALLOC_ARENA_MAX=1
# A number, so that Kubernetes can see that it isn't root's.
USER 65532:65532
WORKDIR /app
ENTRYPOINT ["/nodejs/bin/node", "--max-semi-space-size=8", "--heap-growing-percent=20", "--expose-gc", "/app/reconstruct.mjs"]
CMD ["run"]
