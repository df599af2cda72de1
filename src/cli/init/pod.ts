import { has } from './design.js';
import type { Child, Design } from './design.js';
import { commandField } from './fields.js';
import { Call, code, Noted, onLines } from './source.js';
import type { Source } from './source.js';

export type Members = Readonly<Record<string, Source>>;

const CONFIG_MOUNT: Source = { name: 'config', mountPath: '/config' };
const DATA_MOUNT: Source = { name: 'data', mountPath: '/data' };

/** The pods of what serves. */
export function serverPod(design: Design): Source {
  const container: Members = {
    ...(has(design, 'Service') && {
      ports: [{ name: 'http', containerPort: code('spec.port'), protocol: 'TCP' }],
      readinessProbe: { tcpSocket: { port: 'http' } },
    }),
    ...(has(design, 'HorizontalPodAutoscaler') && { resources: { requests: { cpu: code('spec.cpu') } } }),
    ...(design.server === 'StatefulSet'
      ? mounts([...sharedMounts(design), DATA_MOUNT])
      : mounts(isShared(design) ? [] : sharedMounts(design))),
  };
  return isShared(design) ? new Call("pod(name, spec, 'Always', ", container) : podSpec(design, container);
}

/** The pods of a Job or a CronJob. */
export function taskPod(design: Design, child: Child): Source {
  const command = { command: code(`spec.${commandField(design, child)}`) };
  if (isShared(design)) return new Call("pod(name, spec, 'Never', ", command);
  return podSpec(design, { ...command, ...mounts(sharedMounts(design)) }, { restartPolicy: 'Never' });
}

/** The function of which several workloads have their pods. @returns nothing where there is one workload */
export function podFunction(design: Design, specType: string): string {
  if (!isShared(design)) return '';
  const container: Members = { ...mounts(sharedMounts(design)), '...container': code('...container') };
  const members = podSpec(design, container, { restartPolicy: code('restartPolicy') });
  return `
/** A pod that runs the image, with what \`container\` adds. */
function pod(
  name: string,
  spec: ${specType},
  restartPolicy: 'Always' | 'Never',
  container: object,
): object {
  return ${onLines(members, '  ')};
}
`;
}

function isShared({ workloads }: Design): boolean {
  return workloads.length > 1;
}

function podSpec(design: Design, container: Members, others: Members = {}): Members {
  const volumes = volumesOf(design);
  return {
    ...others,
    ...(has(design, 'ServiceAccount') && { serviceAccountName: code('name') }),
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'main',
        image: code('spec.image'),
        imagePullPolicy: new Noted(
          "Left out, it would stay what the first image's tag made it.",
          'IfNotPresent',
        ),
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        ...container,
      },
    ],
    ...(volumes.length > 0 && { volumes }),
  };
}

function volumesOf(design: Design): readonly Source[] {
  return [
    ...(has(design, 'ConfigMap') ? [{ name: 'config', configMap: { name: code('name') } }] : []),
    ...(has(design, 'PersistentVolumeClaim')
      ? [{ name: 'data', persistentVolumeClaim: { claimName: code('name') } }]
      : []),
  ];
}

/** What every pod of the kind mounts. */
function sharedMounts(design: Design): Source[] {
  return [
    ...(has(design, 'ConfigMap') ? [CONFIG_MOUNT] : []),
    ...(has(design, 'PersistentVolumeClaim') ? [DATA_MOUNT] : []),
  ];
}

function mounts(volumeMounts: readonly Source[]): Members {
  return volumeMounts.length > 0 ? { volumeMounts } : {};
}
