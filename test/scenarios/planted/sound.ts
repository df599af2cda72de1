import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineKind } from '../../../src/author/define-kind.js';
import type { CustomResourceProps } from '../../../src/contract/kind.js';
import { selectorLabels } from '../../../src/contract/names.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { SampleSite } from '../../../src/testing/tested-kind.js';
import { contentHash } from '../../../src/values/json.js';
import { plantedCrd } from './crd.js';
import type { PlantedSpec } from './crd.js';

/** What a fault changes of a sound construct; each returns what would be there without it, as a rule. */
export class Sound extends Construct {
  constructor(scope: Construct, id: string, { metadata, spec }: CustomResourceProps<PlantedSpec>) {
    super(scope, id);
    const { name } = metadata;
    new ApiObject(this, 'Settings', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
      data: this.settings(name, spec),
    });
    new ApiObject(this, 'Parts', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: this.partsName(name) } },
      data: Object.fromEntries((spec.parts ?? []).map((part) => [part.name, part.value ?? ''])),
    });
    const labels = selectorLabels({ apiVersion: 'planted.example.com/v1', kind: 'Planted' }, name);
    const containers = [{ name: 'main', image: spec.image, ...this.pulling() }];
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    });
  }

  protected settings(_name: string, { color }: PlantedSpec): Record<string, string> {
    return color === undefined ? {} : { color };
  }

  protected pulling(): object {
    return { imagePullPolicy: 'IfNotPresent' };
  }

  protected partsName(name: string): string {
    return `${name}-parts`;
  }
}

export const soundProps = {
  crd: plantedCrd(),
  construct: Sound,
  children: [
    { apiVersion: 'v1', kind: 'ConfigMap' },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
  ],
};

export const sound = defineKind(soundProps);

/** Renders a Pod of its own, and hashes of its name in names. */
class Hashing extends Sound {
  constructor(scope: Construct, id: string, props: CustomResourceProps<PlantedSpec>) {
    super(scope, id, props);
    const { metadata, spec } = props;
    new ApiObject(this, 'Pod', {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: this.partsName(metadata.name) } },
      spec: { containers: [{ name: 'main', image: spec.image, ...this.pulling() }] },
    });
  }

  protected override partsName(name: string): string {
    return `${name}-${contentHash({ name }).slice(0, 8)}`;
  }
}

export const hashing = defineKind({
  ...{ ...soundProps, construct: Hashing },
  children: [...soundProps.children, { apiVersion: 'v1', kind: 'Pod' }],
});

/** Renders an object that its spec names, with a hash of that name. */
class Naming extends Sound {
  constructor(scope: Construct, id: string, props: CustomResourceProps<PlantedSpec>) {
    super(scope, id, props);
    const { color = '', parts: [{ value: namespace = '' } = {}] = [] } = props.spec;
    const metadata = { name: `${color}-${contentHash({ color }).slice(0, 8)}`, namespace };
    new ApiObject(this, 'Named', { apiVersion: 'v1', kind: 'Secret', metadata });
  }
}

export const naming = defineKind({
  ...{ ...soundProps, construct: Naming },
  children: [...soundProps.children, { apiVersion: 'v1', kind: 'Secret', namespaces: '*' }],
});

/** Specs that name an object of their own, elsewhere. */
export const namingSamples = ({ name, elsewhere }: SampleSite): AnyObject[] =>
  ['one:1', 'two:2'].map((image) => ({
    ...{ apiVersion: 'planted.example.com/v1', kind: 'Planted', metadata: { name: 'sample' } },
    spec: { image, color: name, parts: [{ name: 'namespace', value: elsewhere }] },
  }));
