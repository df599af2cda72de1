import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import type { Kind } from '../../src/contract/kind.js';
import { installManifests } from '../../src/install/manifests.js';
import type { AlertGroup } from '../../src/install/chart.js';
import type { InstallProps } from '../../src/install/props.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';

const kinds: readonly Kind[] = [appService, jobWatcher, streamIngress];
const props: InstallProps = { namespace: 'ops', image: 'example.com/reconstruct:1', kinds, replicas: 2 };

interface ServiceMonitorSpec {
  readonly selector: { readonly matchLabels: object };
  readonly namespaceSelector: { readonly matchNames: string[] };
  readonly endpoints: { readonly port: string; readonly tlsConfig?: object }[];
}

const manifests = (changed: Partial<InstallProps> = {}): AnyObject[] =>
  installManifests({ ...props, ...changed });

interface Rule {
  readonly apiGroups: string[];
  readonly resources: string[];
  readonly verbs: string[];
  readonly resourceNames?: string[];
}

function rulesOf(objects: readonly AnyObject[], kind: string, name: string, namespace?: string): Rule[] {
  const role = objects.find(
    ({ kind: is, metadata }) => is === kind && metadata.name === name && metadata.namespace === namespace,
  );
  return (role?.rules ?? []) as Rule[];
}

const verbsOn = (rules: readonly Rule[], resource: string): string[] =>
  [
    ...new Set(rules.filter(({ resources }) => resources.includes(resource)).flatMap(({ verbs }) => verbs)),
  ].sort();

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];

describe('installManifests', () => {
  it('has what the rest needs first, and CRDs as they are but for the labels', () => {
    const all = manifests();
    const [namespace, ...rest] = all.map(({ kind }) => kind);
    expect(namespace).toBe('Namespace');
    expect(rest.lastIndexOf('CustomResourceDefinition')).toBe(2);
    expect(rest.at(-1)).toBe('Deployment');
    for (const { crd } of kinds)
      expect(all.find(({ metadata }) => metadata.name === crd.metadata.name)?.spec).toEqual(crd.spec);
  });

  it('leaves UID, GID and fsGroup to the cluster on request, and stays restricted', () => {
    const pod = (omitUserIds: boolean): string =>
      JSON.stringify(manifests({ omitUserIds }).find(({ kind }) => kind === 'Deployment')!.spec);
    expect(pod(false)).toMatch(/"runAsUser":65532.*"runAsGroup":65532.*"fsGroup":65532/);
    expect(pod(true)).not.toMatch(/runAsUser|runAsGroup|fsGroup/);
    expect(pod(true).match(/"runAsNonRoot":true/g)).toHaveLength(2);
  });

  it('lets Prometheus find the metrics of this installation, by the names that the alerts ask for', () => {
    const all = manifests({ monitoring: { parts: ['service-monitor', 'rules'] } });
    const of = (kind: string): AnyObject => all.find((object) => object.kind === kind)!;
    const { selector, namespaceSelector, endpoints } = of('ServiceMonitor').spec as ServiceMonitorSpec;
    const service = of('Service');
    // The Prometheus operator names the job after the Service.
    expect(service.metadata.name).toBe('reconstruct-metrics');
    expect(service.metadata.labels).toMatchObject(selector.matchLabels);
    expect(namespaceSelector.matchNames).toEqual([service.metadata.namespace]);
    const { ports } = service.spec as { ports: { name: string }[] };
    expect(endpoints.map(({ port }) => port)).toEqual(ports.map(({ name }) => name));
    const { groups } = of('PrometheusRule').spec as { groups: AlertGroup[] };
    for (const { expr } of groups.flatMap(({ rules }) => rules))
      expect(expr).toContain('{job="reconstruct-metrics",namespace="ops"');
  });
});

describe('secure metrics', () => {
  const secureMetrics = {};

  it('have a port of their own everywhere, and who reads them is asked in the whole cluster', () => {
    for (const where of [{}, { watchNamespaces: ['shop'] }]) {
      const all = manifests({ secureMetrics, ...where });
      expect(argumentsOf(all)).toEqual(
        expect.arrayContaining(['--metrics-bind-address=:8443', '--metrics-secure']),
      );
      expect(JSON.stringify(all)).not.toContain('8080');
      const asked = rulesOf(all, 'ClusterRole', 'reconstruct:ops');
      for (const review of ['tokenreviews', 'subjectaccessreviews'])
        expect(verbsOn(asked, review)).toEqual(['create']);
      if ('watchNamespaces' in where) expect(asked).toHaveLength(2);
      expect(rulesOf(all, 'ClusterRole', 'reconstruct:ops:metrics-reader')).toEqual([
        { nonResourceURLs: ['/metrics'], verbs: ['get'] },
      ]);
    }
    expect(JSON.stringify(manifests())).not.toMatch(/8443|metrics-secure|metrics-reader|reviews/);
  });

  it('are collected with the token of Prometheus, which verifies a certificate of the admin', () => {
    const monitoring = { parts: ['service-monitor'] } as const;
    const tlsOf = (secure: object): unknown => {
      const all = manifests({ monitoring, secureMetrics: secure });
      const { endpoints } = all.find(({ kind }) => kind === 'ServiceMonitor')!.spec as ServiceMonitorSpec;
      expect(endpoints[0]).toMatchObject({
        ...{ port: 'metrics', scheme: 'https' },
        bearerTokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
      });
      return endpoints[0]!.tlsConfig;
    };
    expect(tlsOf({})).toEqual({ insecureSkipVerify: true });
    const ca = { secret: { name: 'metrics-tls', key: 'ca.crt' } };
    expect(tlsOf({ certificateSecret: 'metrics-tls' })).toEqual({
      ...{ ca, serverName: 'reconstruct-metrics.ops.svc' },
    });
  });
});

describe('rights', () => {
  it('and arguments follow the flags of kinds', () => {
    const flags = { '--ingress-namespace': 'edge', '--jobwatcher-admin-namespaces': ['a', 'b'] };
    const all = manifests({ flags });
    expect(verbsOn(rulesOf(all, 'Role', 'reconstruct:ops', 'edge'), 'configmaps')).toContain('patch');
    expect(rulesOf(all, 'Role', 'reconstruct:ops', 'ingress-nginx')).toEqual([]);
    expect(argumentsOf(all)).toEqual(
      expect.arrayContaining(['--ingress-namespace=edge', '--jobwatcher-admin-namespaces=a,b']),
    );
  });

  it('and arguments follow the policy, which is mounted', () => {
    const text = 'streamingress: { targets: [{ name: edge, ingressNamespace: edge }] }\n';
    const parsed = { streamingress: { targets: [{ name: 'edge', ingressNamespace: 'edge' }] } };
    const all = manifests({ policy: { text, parsed } });
    expect(verbsOn(rulesOf(all, 'Role', 'reconstruct:ops', 'edge'), 'configmaps')).toContain('patch');
    expect(argumentsOf(all)).toContain('--policy=/etc/reconstruct/policy.yaml');
    expect(all.find(({ kind }) => kind === 'ConfigMap')?.data).toEqual({ 'policy.yaml': text });
    expect(JSON.stringify(all.at(-1)?.spec)).toContain('"mountPath":"/etc/reconstruct"');
  });

  it('and those of the settings, beside it', () => {
    const [text, parsed] = ['page: {}\n', {}];
    const all = manifests({ policy: { text: '{}\n', parsed }, settings: { text, parsed } });
    expect(argumentsOf(all)).toContain('--settings=/etc/reconstruct-settings/settings.yaml');
    expect(all.filter(({ kind }) => kind === 'ConfigMap').map(({ data }) => data)).toEqual([
      ...[{ 'policy.yaml': '{}\n' }, { 'settings.yaml': text }],
    ]);
    const { template } = all.at(-1)?.spec as { template: { spec: { volumes: unknown } } };
    expect(template.spec.volumes).toEqual([
      { name: 'policy', configMap: { name: 'reconstruct-policy' } },
      { name: 'settings', configMap: { name: 'reconstruct-settings' } },
    ]);
  });

  it('name the kinds, so that an image with more of them asks for no more', () => {
    expect(argumentsOf(manifests({ kinds: [appService] }))).toContain('--kinds=appservice.kosmos.io');
  });
});

function argumentsOf(objects: readonly AnyObject[]): readonly string[] {
  const { spec } = objects.at(-1) as unknown as {
    spec: { template: { spec: { containers: [{ args: string[] }] } } };
  };
  return spec.template.spec.containers[0].args;
}

describe('what users may do', () => {
  const inCluster = (role: string): Rule[] => rulesOf(manifests(), 'ClusterRole', `reconstruct:ops:${role}`);

  it('is nothing but to read the status, by no role', () => {
    for (const role of ['view', 'edit', 'admin'])
      expect([[], ['get']]).toContainEqual(verbsOn(inCluster(role), 'appservices/status'));
  });

  it('is there as Roles in single namespaces, each with the rights of those before it', () => {
    const all = manifests({ watchNamespaces: ['shop'] });
    const of = (role: string): Rule[] => rulesOf(all, 'Role', `reconstruct:ops:${role}`, 'shop');
    expect(verbsOn(of('view'), 'appservices')).toEqual(READ);
    expect(verbsOn(of('edit'), 'appservices')).toEqual([...WRITE, ...READ].sort());
    expect(verbsOn(of('edit'), 'streamingresses')).toEqual(READ);
    expect(verbsOn(of('admin'), 'jobwatchers')).toEqual([...WRITE, ...READ].sort());
  });
});
