// @ts-check
import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { tenant } from './kind.mjs';

const [database] = Yaml.load(join(import.meta.dirname, 'database.yaml'));

await sweepCommand(
  tenant,
  async () => {
    const [sample] = await readSamples(tenant, new URL('sample.yaml', import.meta.url));
    const { image } = sample.spec;
    return [
      sample,
      { ...sample, spec: { image, database: 'orders-database', settings: { currency: 'USD' } } },
    ];
  },
  {
    // What it refers to.
    surroundings: ({ namespace }) => ({
      objects: [{ ...database, metadata: { ...database.metadata, namespace } }],
    }),
    waits: ({ database: secret }) => secret !== 'orders-database',
  },
);
