import { readSamples, sweepCommand, withSandbox } from 'cdk8s-reconstruct/testing';
import { database, role } from './kinds.ts';

const file = new URL('sample.yaml', import.meta.url);
const [api] = await readSamples(role, file);
const [shop] = await readSamples(database, file);
const other = { database: 'shop', name: 'api', privileges: 'READ', secretTemplate: { HOST: '{{.Host}}' } };
await withSandbox({ kinds: [database] }, ({ sandbox }) =>
  sweepCommand(role, () => Promise.resolve([api, { ...api, spec: other }]), {
    sandbox,
    surroundings: ({ namespace }) => ({
      objects: [{ ...shop, metadata: { name: 'shop', namespace }, status: { owner: 'shop-owner' } }],
    }),
    notWalked: ['database'],
  }),
);
