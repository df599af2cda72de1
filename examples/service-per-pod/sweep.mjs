// @ts-check
import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import { sweepCommand } from 'cdk8s-reconstruct/testing';
import { servicePerPod } from './controller.mjs';

await sweepCommand(servicePerPod, async () => {
  const [database] = Yaml.load(join(import.meta.dirname, 'database.yaml'));
  return [1, 2].map((replicas) => ({ ...database, spec: { ...database.spec, replicas } }));
});
