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
export type { ProcessIdentity } from '#sandbox/process.js';
export type { Log } from '#sandbox/progress.js';
export { Cluster } from './cluster.js';
export type { Answer, DeleteOptions, Manifest, Method, Place, RequestOptions } from './cluster.js';
export type { Propagation } from '../client/api.js';
export { eventually } from './eventually.js';
export type { EventuallyOptions } from './eventually.js';
export { Operator, withSandbox } from './operator.js';
export type { OperatorProps, SandboxContext, WithSandboxOptions } from './operator.js';
export { readSamples, render } from './render.js';
export type { SampleObject } from './render.js';
export type { OfflineInputs } from '../render/references.js';
export { sweep, sweepCommand } from './conformance.js';
export type { ConformanceOptions } from './conformance.js';
export { requireAnnounced } from './announced.js';
export type { AnnouncedProps } from './announced.js';
export { formatReport, requireHeld } from './report.js';
export type { CheckName, CheckResult, ConformanceReport, Failure, Outcome } from './report.js';
export type { MakeSurroundings, SampleSite, Site, Surroundings } from './tested-kind.js';
