// @ts-check
import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import { formatReport, sweep } from 'cdk8s-reconstruct/testing';
import { scheduledTask } from './kind.mjs';

const [sample] = Yaml.load(join(import.meta.dirname, 'sample.yaml'));
const { script, ...spec } = sample.spec;
// Each sample is edited into the next, so that here the script goes.
const samples = [sample, { ...sample, spec: { ...spec, schedule: '30 6 * * *', suspend: true } }];

const report = await sweep(scheduledTask, samples);
console.log(formatReport(report));
process.exitCode = report.held ? 0 : 1;
