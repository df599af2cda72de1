import { join } from 'node:path';
import { ApiObject, Yaml, type ApiObjectProps } from 'cdk8s';
import { defineCrd, defineKind, type PropsOf } from 'cdk8s-reconstruct';
import { Construct } from 'constructs';

const crd = defineCrd({
  group: 'apps.example.com',
  kind: 'Cache',
  description: 'What a Helm chart holds, once for each custom resource.',
  rules: [
    {
      rule: "self.metadata.name.matches('^[a-z][-a-z0-9]{0,39}$')",
      message:
        'the name of its Service begins with it; use lower-case letters, digits and "-", at most 40, with a letter first',
    },
  ],
  spec: { type: 'object', default: {}, properties: {} },
});

/** Read once, when this module is loaded: `helm template release-name cache --no-hooks > chart.yaml`. */
const chart = JSON.stringify(Yaml.load(join(import.meta.dirname, 'chart.yaml')));

/** Names, labels and references: the release's name as a whole, or what begins with it and "-". */
const named = /^release-name(?=$|-[-a-z0-9]+$)/;

class Cache extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name } }: PropsOf<typeof crd>) {
    super(scope, id);
    const renamed = (_: string, value: unknown): unknown =>
      typeof value === 'string' ? value.replace(named, name) : value;
    const objects = JSON.parse(chart, renamed) as ApiObjectProps[];
    for (const object of objects) new ApiObject(this, object.kind, object);
  }
}

export const cache = defineKind({
  crd,
  construct: Cache,
  children: [
    { apiVersion: 'v1', kind: 'Service' },
    { apiVersion: 'apps/v1', kind: 'StatefulSet' },
  ],
});
