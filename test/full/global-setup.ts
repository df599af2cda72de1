import type { TestProject } from 'vitest/node';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { SandboxHandle } from '../../sandbox/control-plane.js';
import { httpRouteCrd } from '../support/http-route-crd.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The sandbox all cluster tests share; `openSandbox(inject('sandbox'))` opens it. */
    readonly sandbox: SandboxHandle;
  }
}

/** Plain users without rights, `operator-0` to `operator-99`: one per operator under test. */
export const operatorUsers = Array.from({ length: 100 }, (_, index) => `operator-${index}`);

/** Starts the shared sandbox. Returns its teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const sandbox = await startSandbox({ users: operatorUsers });
  // From the start, so that no test depends on which ran before it.
  await sandbox.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(httpRouteCrd) });
  project.provide('sandbox', sandbox.handle);
  return () => sandbox.stop();
}
