import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineKind } from '../../../src/author/define-kind.js';
import type { CustomResourceProps } from '../../../src/contract/kind.js';
import { selectorLabels } from '../../../src/contract/names.js';
import { plantedCrd } from './crd.js';
import type { PlantedSpec } from './crd.js';
import { soundProps } from './sound.js';

const crd = plantedCrd({ wide: true });

/** Objects of one name in two namespaces. */
class Wide extends Construct {
  constructor(scope: Construct, id: string, { metadata, spec }: CustomResourceProps<PlantedSpec>) {
    super(scope, id);
    const { name } = metadata;
    for (const namespace of ['default', 'kube-public'])
      new ApiObject(this, namespace, {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: this.settingsName(name), namespace } },
        data: { namespace, ...(spec.color !== undefined && { color: spec.color }) },
      });
    const labels = selectorLabels(crd, name);
    const containers = [{ name: 'main', image: spec.image, imagePullPolicy: 'IfNotPresent' }];
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default' } },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    });
  }

  protected settingsName(name: string): string {
    return name;
  }
}

export const wide = defineKind({ ...soundProps, crd, construct: Wide });

class CollidingWide extends Wide {
  protected override settingsName(): string {
    return 'settings';
  }
}

/** Two custom resources want the same object in another namespace. */
export const collidingWide = defineKind({ ...soundProps, crd, construct: CollidingWide });

const colors = new Map<string, string>();

class RememberingWide extends Wide {
  constructor(scope: Construct, id: string, props: CustomResourceProps<PlantedSpec>) {
    const { metadata, spec } = props;
    const color = spec.color ?? colors.get(metadata.name);
    if (color !== undefined) colors.set(metadata.name, color);
    super(scope, id, { ...props, spec: { ...spec, ...(color !== undefined && { color }) } });
  }
}

/** A field that is removed stays as it was. */
export const rememberingWide = defineKind({ ...soundProps, crd, construct: RememberingWide });
