import type { Plan } from './code.js';
import { fieldsOf, OTHER_IMAGE } from './fields.js';

/** The folder of the sample's manifests, below the project. */
const SNAPSHOTS = 'test/snapshots';

export function snapshotFile({ names }: Plan): string {
  return `${SNAPSHOTS}/${names.file}.yaml`;
}

/** Records the snapshot too. */
export const SNAPSHOT_TEST = 'test/snapshot.test.ts';

/** The test that needs nothing but Node. */
export function snapshotTest(plan: Plan): string {
  const { names, library } = plan;
  return `import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from '${library}/testing';
import { ${names.variable} } from '../src/kind.ts';

const project = join(import.meta.dirname, '..');
const [sample] = Yaml.load(join(project, 'samples/${names.file}.yaml'));

test('the sample is rendered as it was', (t) => {
  const manifests = Yaml.stringify(...render(${names.variable}, sample));

  t.assert.fileSnapshot(manifests, join(project, '${snapshotFile(plan)}'), {
    serializers: [(text) => text],
  });
});

test('what the schema does not know is refused, with its place', () => {
  const mistaken = { ...sample, spec: { ...sample.spec, colour: 'blue' } };

  assert.throws(() => render(${names.variable}, mistaken), /spec\\.colour: unknown field/);
});
`;
}

/** The test that runs the operator on a real API server. */
export function operatorTest({ names, library }: Plan): string {
  return `import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import type { Condition } from '${library}';
import { eventually, withSandbox } from '${library}/testing';
import { ${names.variable} } from '../src/kind.ts';

const [sample] = Yaml.load(join(import.meta.dirname, '../samples/${names.file}.yaml'));

test('the operator makes the sample ready', () =>
  withSandbox({ kinds: [${names.variable}] }, async ({ cluster, makeNamespace, run }) => {
    const namespace = await makeNamespace('test');
    await run([${names.variable}]);

    await cluster.create(${names.variable}.type, { ...sample, metadata: { ...sample.metadata, namespace } });

    const place = { type: ${names.variable}.type, namespace, name: sample.metadata.name };
    await eventually(async () => {
      const { status } = await cluster.get<{ status?: { conditions?: Condition[] } }>(place);
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      assert.equal(ready?.status, 'True', ready?.message);
    });
  }));
`;
}

/** The program that sweeps the kind. */
export function sweepProgram({ names, design, library }: Plan): string {
  const field = fieldsOf(design, names).find(({ name }) => name in OTHER)?.name ?? '';
  const file = `join(import.meta.dirname, '../samples/${names.file}.yaml')`;
  const edited = OTHER[field];
  const edit =
    edited === undefined
      ? ''
      : `// What the sample is edited into.\nconst edited = { ...sample.spec, ${edited} };\n`;
  return `import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Yaml } from 'cdk8s';
import { formatReport, sweep } from '${library}/testing';
import type { CheckName } from '${library}/testing';
import { ${names.variable} } from '../src/kind.ts';

const [sample] = Yaml.load(${file});
${edit}const samples = [sample${edited === undefined ? '' : ', { ...sample, spec: edited }'}];
const { values, positionals } = parseArgs({
  options: { seed: { type: 'string' } },
  allowPositionals: true,
});
const checks = positionals as CheckName[];

const report = await sweep(${names.variable}, samples, {
  ...(checks.length > 0 && { checks }),
  ...(values.seed !== undefined && { seed: Number(values.seed) }),
  onResult: ({ check, held, seconds }) => {
    console.log(\`\${check}: \${held ? 'held' : 'FAILED'}, after \${seconds.toFixed(0)} s\`);
  },
});
console.log(\`\\n\${formatReport(report)}\`);
process.exitCode = report.held ? 0 : 1;
`;
}

/** What is edited, by field; the first that the kind has. */
const OTHER: Readonly<Record<string, string>> = {
  image: `image: '${OTHER_IMAGE}'`,
  config: `config: { 'settings.ini': 'greeting = good morning' }`,
};
