import type { EventBusSpec } from './crd.ts';

type Labels = Readonly<Record<string, string>>;

/** The image's own user, and the group that its volume belongs to. */
const NATS_USER = 1000;

export function podSpec(name: string, spec: EventBusSpec, labels: Labels): object {
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // Longer than clients are given to leave.
    terminationGracePeriodSeconds: 60,
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: labels },
      },
    ],
    securityContext: {
      ...{ runAsNonRoot: true, runAsUser: NATS_USER, runAsGroup: NATS_USER, fsGroup: NATS_USER },
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'nats',
        image: spec.image,
        // Left out, it would stay as it was chosen by the first image's tag.
        imagePullPolicy: 'IfNotPresent',
        command: ['nats-server', '--config', '/etc/nats/nats.conf'],
        env: environment(spec),
        ports: [
          { name: 'nats', containerPort: 4222 },
          { name: 'route', containerPort: 6222 },
          { name: 'monitor', containerPort: 8222 },
        ],
        ...probes(),
        lifecycle: { preStop: { exec: { command: ['nats-server', '--signal', 'ldm=1'] } } },
        resources: {
          requests: { cpu: '100m', memory: `${spec.memoryMiB}Mi` },
          limits: { memory: `${spec.memoryMiB}Mi` },
        },
        volumeMounts: [
          { name: 'config', mountPath: '/etc/nats', readOnly: true },
          { name: 'data', mountPath: '/data' },
        ],
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
      },
    ],
    volumes: [{ name: 'config', configMap: { name } }],
  };
}

function environment({ memoryMiB, tokenSecret }: EventBusSpec): object[] {
  return [
    { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    // The garbage collector of Go works harder before the kernel ends the process.
    { name: 'GOMEMLIMIT', value: `${Math.floor(memoryMiB * 0.9)}MiB` },
    ...(tokenSecret === undefined
      ? []
      : [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: tokenSecret, key: 'token' } } }]),
  ];
}

/** What is asked at the start takes as long as there are streams to read; a server that is at that isn't dead. */
function probes(): object {
  const asked = (query: string): object => ({ httpGet: { path: `/healthz${query}`, port: 'monitor' } });
  return {
    startupProbe: { ...asked(''), failureThreshold: 90, periodSeconds: 10 },
    readinessProbe: { ...asked('?js-server-only=true'), periodSeconds: 10 },
    livenessProbe: { ...asked('?js-enabled-only=true'), periodSeconds: 30 },
  };
}
