import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import type { AnyObject } from 'cdk8s-reconstruct';
import { sweepCommand, withSandbox } from 'cdk8s-reconstruct/testing';
import { database, role } from './kinds.ts';

const [api, shop] = Yaml.load(join(import.meta.dirname, 'sample.yaml')) as [AnyObject, AnyObject];
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
