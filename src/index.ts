/**
 * Reconstruct: write a cdk8s construct, get a Kubernetes operator.
 *
 * `defineKind` makes an operator of a construct; `reconstruct.config.mjs` hands it to every command. Kinds that are
 * more than "one custom resource, its own children" are written on the core contract, `Controller`.
 */
export * from './contract/change.js';
export * from './contract/conditions.js';
export * from './contract/controller.js';
export * from './contract/crd.js';
export * from './contract/define-kind.js';
export * from './contract/delete-step.js';
export * from './contract/error.js';
export * from './contract/hand-over.js';
export * from './contract/kind.js';
export * from './contract/kind-flag.js';
export * from './contract/metric.js';
export * from './contract/names.js';
export * from './contract/object.js';
export { keepIdentity, keepStatus } from './contract/projections.js';
export * from './contract/readiness.js';
export * from './contract/render-together.js';
export * from './contract/resource.js';
export * from './contract/shared-apply.js';
export * from './contract/status.js';
export { AppService } from './kinds/app-service/construct.js';
export type { AppServiceProps } from './kinds/app-service/construct.js';
export { appService } from './kinds/app-service/kind.js';
export { jobWatcher } from './kinds/job-watcher/kind.js';
export { streamIngress } from './kinds/stream-ingress/kind.js';
export { leaseRules, rulesFor } from './install/rules.js';
export type { PolicyRule } from './install/rules.js';
export { render } from './synth/render.js';
