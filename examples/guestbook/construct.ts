import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { selectorLabels, type PropsOf } from 'cdk8s-reconstruct';
import { crd } from './crd.ts';

type Props = PropsOf<typeof crd>;

export class Guestbook extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name }, spec }: Props) {
    super(scope, id);
    const labels = selectorLabels(crd, name);
    const container = { name: 'web', image: spec.image, imagePullPolicy: 'IfNotPresent' };
    const template = { metadata: { labels }, spec: { containers: [container] } };

    new ApiObject(this, 'Deployment', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: { replicas: spec.replicas, selector: { matchLabels: labels }, template },
    });
  }
}
