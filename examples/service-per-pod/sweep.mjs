// @ts-check
import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import { sweepCommand } from 'cdk8s-reconstruct/testing';
import { servicePerPod } from './controller.mjs';

await sweepCommand(servicePerPod, async () => {
  const [database] = Yaml.load(join(import.meta.dirname, 'database.yaml'));
  return ['5432', '5432,8008'].map((ports, index) => ({
    ...database,
    metadata: { ...database.metadata, annotations: { 'pods.example.com/ports': ports } },
    spec: { ...database.spec, replicas: index + 1 },
  }));
});
