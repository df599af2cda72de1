/**
 * The testing kit: what a kind's author needs to test it on a real API server, harder than by hand. It works with any
 * test runner, and without one. See docs/testing.md.
 */
export type {
  AuditEntry,
  AuditObjectRef,
  KubectlOptions,
  KubectlResult,
  Sandbox,
  SandboxClient,
  SandboxHandle,
  SandboxOptions,
  SandboxRecord,
} from '#sandbox/control-plane.js';
export type { ProcessIdentity } from '#sandbox/process-identity.js';
export type { Log } from '#sandbox/progress.js';
export { Cluster } from './cluster.js';
export type { Answer, DeleteOptions, Manifest, Method, Place, RequestOptions } from './cluster.js';
export { eventually } from './eventually.js';
export type { EventuallyOptions } from './eventually.js';
export { Operator } from './operator.js';
export type { OperatorProps } from './operator.js';
export { render } from './render.js';
export type { Failure, Outcome, CheckName, CheckResult, SweepReport } from './sweep/outcome.js';
export { formatReport, requireHeld } from './sweep/outcome.js';
export { sweep } from './sweep/sweep.js';
export type { MakeSurroundings, Site, Surroundings } from './sweep/stand.js';
export type { SweepOptions } from './sweep/sweep.js';
export { withSandbox } from './with-sandbox.js';
export type { SandboxContext, WithSandboxOptions } from './with-sandbox.js';
