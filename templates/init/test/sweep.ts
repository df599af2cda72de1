import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Yaml } from 'cdk8s';
import { formatReport, sweep } from 'cdk8s-reconstruct/testing';
import type { CheckName } from 'cdk8s-reconstruct/testing';
import { kind } from '../src/kind.ts';

const [sample] = Yaml.load(join(import.meta.dirname, '../samples/gizmo.yaml'));
const edited = {
  ...sample,
  spec: {
    ...sample.spec,
    // if: workload
    image: 'nginxinc/nginx-unprivileged:1.28-alpine',
    // if: ConfigMap
    config: { 'settings.ini': 'greeting = good morning' },
  },
};
const { values, positionals } = parseArgs({
  options: { seed: { type: 'string' } },
  allowPositionals: true,
});
const checks = positionals as CheckName[];

const report = await sweep(kind, [sample, edited], {
  ...(checks.length > 0 && { checks }),
  ...(values.seed !== undefined && { seed: Number(values.seed) }),
  onResult: ({ check, held, seconds }) => {
    console.log(`${check}: ${held ? 'held' : 'FAILED'}, after ${seconds.toFixed(0)} s`);
  },
});
console.log(`\n${formatReport(report)}`);
process.exitCode = report.held ? 0 : 1;
