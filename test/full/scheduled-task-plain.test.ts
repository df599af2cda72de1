import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadKinds } from '../../src/cli/config.js';
import type { OwnedKind } from '../../src/contract/kind.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { render } from '../../src/synth/render.js';

const root = join(import.meta.dirname, '../..');
const example = join(root, 'examples/scheduled-task');
const cli = join(root, 'lib/bundle/reconstruct.mjs');
const sampleText = readFileSync(join(example, 'sample.yaml'), 'utf8');
const sample = parse(sampleText) as CustomResource<Record<string, unknown>>;
const kind = await scheduledTask();

/** What the configuration of the example lists. */
async function scheduledTask(): Promise<OwnedKind> {
  const kinds = await loadKinds({ builtIn: [], config: join(example, 'reconstruct.config.mjs') });
  expect(kinds.map(({ name }) => name)).toEqual(['scheduledtask']);
  return kinds[0] as OwnedKind;
}

/** What the sample renders to, with these fields of its spec changed. */
function rendered(changes: Readonly<Record<string, unknown>> = {}): AnyObject[] {
  return render(kind, { ...sample, spec: { ...sample.spec, ...changes } });
}

/** Runs Node in the folder of the example, as its user would. */
function node(args: readonly string[], input = '') {
  const env = { ...process.env, CDK8S_OUTDIR: '', NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined };
  return spawnSync(process.execPath, args, { cwd: example, env, input, encoding: 'utf8' });
}

describe('what is rendered', () => {
  test('the sample becomes a ConfigMap and a CronJob that runs it', async () => {
    const objects = rendered();

    const [configMap, cronJob] = objects;
    expect(configMap).toMatchObject({ kind: 'ConfigMap', data: { 'script.sh': sample.spec.script } });
    expect(cronJob).toMatchObject({
      kind: 'CronJob',
      spec: {
        schedule: '0 7 * * 1-5',
        successfulJobsHistoryLimit: 1,
        jobTemplate: {
          spec: {
            template: {
              metadata: { labels: { 'tasks.example.com/scheduledtask': 'good-morning' } },
              spec: {
                containers: [{ command: ['sh', '/task/script.sh'] }],
                volumes: [{ configMap: { name: configMap!.metadata.name } }],
              },
            },
          },
        },
      },
    });
    // The snapshot that the example's own test holds too.
    await expect(Yaml.stringify(...objects)).toMatchFileSnapshot(join(example, '__snapshots__/sample.yaml'));
  });

  test('without a script the image runs its own command', () => {
    const [cronJob, ...others] = rendered({ script: undefined });

    expect(others).toEqual([]);
    expect(cronJob).toHaveProperty('spec.jobTemplate.spec.template.spec', {
      containers: [{ image: 'busybox:1.37', imagePullPolicy: 'IfNotPresent', name: 'task' }],
      restartPolicy: 'Never',
    });
  });

  test('what the custom resource leaves out is left to the cluster', () => {
    const [, cronJob] = rendered({ keep: undefined });

    expect(Object.keys(cronJob?.spec as object)).toEqual(['jobTemplate', 'schedule']);
  });

  test('false and 0 are values', () => {
    const [, cronJob] = rendered({ suspend: false, keep: 0 });

    expect(cronJob?.spec).toMatchObject({ suspend: false, successfulJobsHistoryLimit: 0 });
  });
});

describe('the status', () => {
  /** The status that the controller plans, given the status of the CronJob. */
  function statusFor(cronJobStatus: object | undefined, changes: Readonly<Record<string, unknown>> = {}) {
    const cr = { ...sample, metadata: { ...sample.metadata, uid: 'u', generation: 3 } };
    const cronJob = { ...rendered()[1]!, ...(cronJobStatus && { status: cronJobStatus }) };
    const reader = {
      get: () => ({ ...cr, spec: { ...cr.spec, ...changes } }),
      controlledBy: (type: { kind: string }) => (type.kind === 'CronJob' ? [cronJob] : []),
      mappedTo: () => [],
      clockSkewMilliseconds: undefined,
    };
    const plan = kind.controller(render).reconcile('shop/good-morning', reader, new Date(0));
    return plan.status[0]!.status([]);
  }

  const readyCondition = (reason: string): object => ({
    observedGeneration: 3,
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: 'Ready', status: 'True', reason }) as unknown,
    ]) as unknown,
  });

  test('tells of the runs of the CronJob', () => {
    const status = statusFor({ lastScheduleTime: '2026-01-05T07:00:00Z', active: [{}, {}] });

    expect(status).toMatchObject({ lastScheduleTime: '2026-01-05T07:00:00Z', active: 2 });
    expect(status).toMatchObject(readyCondition('Scheduled'));
  });

  test('a CronJob that has not run yet is ready', () => {
    const status = statusFor(undefined);

    expect(status).toMatchObject({ active: 0, ...readyCondition('Scheduled') });
    expect(status).not.toHaveProperty('lastScheduleTime');
  });

  test('a suspended one is ready and says so', () => {
    expect(statusFor({}, { suspend: true })).toMatchObject(readyCondition('Suspended'));
  });
});

describe('as its user would run it', () => {
  test('synth prints what is rendered', () => {
    const { status, stdout, stderr } = node([cli, 'synth', 'sample.yaml']);

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(parseAllDocuments(stdout).map((document) => document.toJS() as unknown)).toEqual(rendered());
  });

  test('a mistake is told with its place', () => {
    const { status, stdout, stderr } = node([cli, 'synth', '-'], sampleText.replace('schedule:', 'shedule:'));

    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr.split('\n')).toEqual([
      '<stdin>: document 1, line 5: spec.schedule: is missing; add it',
      '<stdin>: document 1, line 6: spec.shedule: unknown field; did you mean schedule?',
      '',
    ]);
  });

  test('its own tests pass', () => {
    const { status, stdout } = node(['--test']);

    expect(status, stdout).toBe(0);
    expect(stdout).toMatch(/pass [1-9]/);
  });

  test('its types hold', () => {
    const flags = ['--ignoreConfig', '--noEmit', '--allowJs', '--strict', '--exactOptionalPropertyTypes'];
    const target = ['--module', 'nodenext', '--target', 'es2023', '--types', 'node', '--skipLibCheck'];
    const files = globSync('*.mjs', { cwd: example });

    const { status, stdout } = node([
      join(root, 'node_modules/typescript/bin/tsc'),
      ...flags,
      ...target,
      ...files,
    ]);

    expect(status, stdout).toBe(0);
  });
});
