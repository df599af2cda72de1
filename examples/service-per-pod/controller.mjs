// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { decorate } from 'cdk8s-reconstruct';

/** A Service for each Pod. */
class ServicePerPod extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').DecoratedProps<'apps/v1', 'StatefulSet'>} props
   */
  constructor(scope, id, { metadata: { name, annotations = {} }, object: { spec } }) {
    super(scope, id);
    const ports = (annotations['pods.example.com/ports'] ?? '').split(',').map(Number);
    for (let index = 0; index < (spec?.replicas ?? 1); index++) {
      const pod = `${name}-${index}`;
      new ApiObject(this, pod, {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: pod } },
        spec: {
          selector: { 'statefulset.kubernetes.io/pod-name': pod },
          ports: ports.map((port) => ({ name: `port-${port}`, port })),
        },
      });
    }
  }
}

export const servicePerPod = decorate({
  ...{ name: 'service-per-pod', apiVersion: 'apps/v1', kind: 'StatefulSet' },
  annotation: 'pods.example.com/ports',
  construct: ServicePerPod,
  children: [{ apiVersion: 'v1', kind: 'Service' }],
});
