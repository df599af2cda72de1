import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Example, root } from '../examples/support/example.js';
import { bundle } from '../support/operator.js';

const examples = await Promise.all(
  [
    'composition',
    'team',
    'guestbook',
    'port-rule',
    'postgres-cluster',
    'preview',
    'event-bus',
    'indexed-job',
    'journal',
    'listing',
    'nap',
    'pod-history',
    'public-address',
    'ring',
    'scheduled-task',
    'tenant',
    'web-app',
    'web-page',
  ].map((name) => Example.load(name)),
);

describe.each(examples.map((example) => [example.kind.name, example] as const))('%s', (_name, example) => {
  test('its own tests pass', () => {
    const { status, stdout } = example.node(['--test']);

    expect(status, stdout).toBe(0);
    expect(stdout).toMatch(/pass [1-9]/);
  });

  test('its types hold', () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const flags = ['--ignoreConfig', '--noEmit', '--allowJs', '--strict', '--exactOptionalPropertyTypes'];
    const target = ['--module', 'nodenext', '--target', 'es2023', '--types', 'node', '--skipLibCheck'];
    const isProject = existsSync(join(example.folder, 'tsconfig.json'));
    const files = globSync('*.mjs', { cwd: example.folder });

    const { status, stdout } = example.node([
      tsc,
      ...(isProject ? ['-p', '.'] : [...flags, ...target, ...files]),
    ]);

    expect(status, stdout).toBe(0);
  });

  test('its sample is valid as it is', () => {
    const { status, stdout, stderr } = example.node([
      bundle,
      'synth',
      'sample.yaml',
      ...(existsSync(join(example.folder, 'database.yaml')) ? ['--references', 'database.yaml'] : []),
    ]);

    const notes = [
      ...(example.kind.generated
        ? [
            `sample.yaml: document 1, line 1: Secret ${example.sample.metadata.name}-${example.kind.name}-generated isn't rendered: the operator makes its values`,
          ]
        : []),
      ...(example.kind.contributes
        ? [
            "sample.yaml: document 1, line 1: Deployment web isn't rendered: it belongs to others, and the operator sets fields of it",
          ]
        : []),
      ...(example.kind.observes
        ? [
            `${example.kind.type.kind}: what depends on the status of its children is pending; it is rendered as if there were none yet`,
          ]
        : []),
    ];
    const isSilent = !('each' in example.kind.rendering);
    if (isSilent)
      notes.push(
        'sample.yaml: document 1, line 1: PodHistory renders nothing without a cluster, where its operator deletes finished Pods',
      );
    const note = notes.map((line) => `${line}\n`).join('');
    expect({ status, stderr }).toEqual({ status: 0, stderr: note });
    expect(stdout === '').toBe(isSilent || example.kind.contributes !== undefined);
  });
});

test.each(['service-per-pod', 'database-role', 'rabbitmq'])('the own tests of %s pass', (name) => {
  const cwd = join(root, 'examples', name);
  const { status, stdout } = spawnSync(process.execPath, ['--test'], { cwd, encoding: 'utf8' });

  expect(status, stdout).toBe(0);
});
