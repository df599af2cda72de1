// @ts-check
import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import { formatReport, sweep } from 'cdk8s-reconstruct/testing';
import { portRule } from './kind.mjs';

const [sample] = Yaml.load(join(import.meta.dirname, 'sample.yaml'));
const other = { name: 'dns.internal', port: 53, protocol: 'UDP', host: 'node-1', isPermanent: true };
// Each sample is edited into the next, so that here the pod moves to another node.
const samples = [sample, { ...sample, spec: other }, { ...sample, spec: { ...other, host: 'no-such-node' } }];

// A rule for a node that there isn't waits for it.
const waits = (/** @type {Readonly<Record<string, unknown>>} */ { host }) => host === 'no-such-node';

const report = await sweep(portRule, samples, { waits });
console.log(formatReport(report));
process.exitCode = report.held ? 0 : 1;
