// @ts-check
import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import { formatReport, sweep, withSandbox } from 'cdk8s-reconstruct/testing';
import { database, role } from './kinds.mjs';

const [api, shop] = Yaml.load(join(import.meta.dirname, 'sample.yaml'));
const surroundings = (/** @type {{ namespace: string }} */ { namespace }) => ({
  objects: [{ ...shop, metadata: { name: 'shop', namespace }, status: { owner: 'shop-owner' } }],
});

const reports = await withSandbox({ kinds: [database, role] }, async ({ sandbox }) => [
  await sweep(database, [shop, { ...shop, spec: { name: 'orders' } }], { sandbox }),
  await sweep(role, [api, { ...api, spec: { ...api.spec, privileges: 'READ' } }], {
    ...{ sandbox, surroundings },
    notWalked: ['database'],
  }),
]);
for (const report of reports) console.log(formatReport(report));
process.exitCode = reports.every(({ held }) => held) ? 0 : 1;
