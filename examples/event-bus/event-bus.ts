import { createHash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { selectorLabels } from 'cdk8s-reconstruct';
import { crd } from './crd.ts';
import type { EventBusProps } from './crd.ts';
import { natsConf } from './nats-conf.ts';
import { podSpec } from './pod.ts';

/** NATS servers that know each other, each with a volume of its own, and what they are told by a file. */
export class EventBus extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name }, spec }: EventBusProps) {
    super(scope, id);
    const labels = selectorLabels(crd, name);
    const conf = natsConf(name, spec);

    // Before the pods, so that none has to wait for it.
    new ApiObject(this, 'Config', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
      data: { 'nats.conf': conf },
    });
    new ApiObject(this, 'Clients', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
      spec: { selector: labels, ports: [{ name: 'nats', port: 4222, targetPort: 'nats' }] },
    });
    new ApiObject(this, 'Peers', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: `${name}-peers` } },
      spec: {
        clusterIP: 'None',
        selector: labels,
        // A server is ready once it has found the others, so they are found before that.
        publishNotReadyAddresses: true,
        ports: [{ name: 'route', port: 6222, targetPort: 'route' }],
      },
    });
    new ApiObject(this, 'Budget', {
      ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name } },
      spec: {
        selector: { matchLabels: labels },
        maxUnavailable: 1,
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
      },
    });
    this.node.defaultChild = new ApiObject(this, 'Servers', {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name } },
      spec: {
        replicas: spec.replicas,
        serviceName: `${name}-peers`,
        // One alone would never find a majority.
        podManagementPolicy: 'Parallel',
        persistentVolumeClaimRetentionPolicy: { whenDeleted: spec.whenDeleted, whenScaled: 'Retain' },
        selector: { matchLabels: labels },
        template: {
          // Another file is another template, by which the pods are replaced one after the other.
          metadata: { labels, annotations: { 'events.example.com/config-hash': hash(conf) } },
          spec: podSpec(name, spec, labels),
        },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: {
              accessModes: ['ReadWriteOnce'],
              resources: { requests: { storage: spec.storage.size } },
              storageClassName: spec.storage.className,
            },
          },
        ],
      },
    });
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
