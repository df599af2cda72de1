import { readFileSync } from 'node:fs';
import { ApiObject, App, Chart } from 'cdk8s';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { AppService } from '../../../src/kinds/app-service/construct.js';
import type { AppServiceProps } from '../../../src/kinds/app-service/construct.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { containerOf, refusal, render } from './render.js';

const WEB: AppServiceSpec = { size: 1, image: 'nginx:1.27' };

function example(name: string): AppServiceProps {
  const file = new URL(`../../../examples/${name}.yaml`, import.meta.url);
  return parse(readFileSync(file, 'utf8')) as AppServiceProps;
}

describe('what is rendered', () => {
  test('defaultChild is the Deployment', () => {
    const chart = new Chart(new App(), 'test');

    const app = new AppService(chart, 'AppService', { metadata: { name: 'web' }, spec: WEB });

    expect(ApiObject.of(app).kind).toBe('Deployment');
  });

  test("the tutorial's sample becomes a Deployment and a NodePort Service", async () => {
    const { metadata, spec } = example('appservice-sample');

    const rendered = render(spec, metadata);

    const { deployment, service } = rendered;
    expect(rendered.objects.map(({ kind, metadata: { name } }) => `${kind}/${name}`)).toEqual([
      'Deployment/appservice-sample',
      'Service/appservice-sample',
    ]);
    expect(deployment.spec?.replicas).toBe(2);
    expect(containerOf(rendered)).toEqual({
      name: 'appservice-sample',
      image: 'nginx:1.7.9',
      imagePullPolicy: 'IfNotPresent',
      ports: [{ containerPort: 80, protocol: 'TCP' }],
    });
    expect(service?.spec?.type).toBe('NodePort');
    expect(service?.spec?.ports).toEqual([{ port: 80, targetPort: 80, nodePort: 30002, protocol: 'TCP' }]);
    await expect(rendered.yaml).toMatchFileSnapshot('__snapshots__/sample.yaml');
  });

  test('selector and labels are the promised ones, on the pods too', () => {
    const { deployment, service } = render({ ...WEB, ports: [{ port: 80 }] });

    const labels = {
      app: 'web',
      'app.kubernetes.io/managed-by': 'reconstruct',
      'app.kubernetes.io/name': 'web',
      'kosmos.io/appservice': 'web',
    };
    const selector = { 'kosmos.io/appservice': 'web' };
    expect(deployment.metadata?.labels).toEqual(labels);
    expect(deployment.spec?.template.metadata).toEqual({ labels });
    expect(deployment.spec?.selector).toEqual({ matchLabels: selector });
    expect(service?.metadata?.labels).toEqual(labels);
    expect(service?.spec?.selector).toEqual(selector);
  });

  test('the custom resource is not changed', () => {
    const props = example('appservice-full');
    const before = structuredClone(props);

    render(props.spec, props.metadata);

    expect(props).toEqual(before);
  });
});

describe('resources and envs', () => {
  test('resources are rendered as given, extended resources and numbers too', () => {
    // GIVEN a quantity that is a number, as the API server stores it where a user wrote one
    const limits = {
      cpu: 1,
      memory: '1.5Gi',
      'ephemeral-storage': '500Mi',
      'example.com/accelerator': 2,
      'hugepages-2Mi': '64Mi',
    };
    const requests = { cpu: '0.5', memory: '128001Ki', 'hugepages-2Mi': '64Mi' };
    const resources = { limits, requests };

    const rendered = render({
      ...WEB,
      resources: resources as unknown as NonNullable<AppServiceSpec['resources']>,
    });

    expect(containerOf(rendered).resources).toEqual(resources);
  });

  test('an env takes its value in every way, in the order given', () => {
    const envs: AppServiceSpec['envs'] = [
      { name: 'PLAIN', value: 'hello' },
      { name: 'EMPTY', value: '' },
      { name: 'NAME_ALONE' },
      { name: 'COMPOSED', value: '$(PLAIN) world' },
      { name: 'FIELD', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } } },
      {
        name: 'RESOURCE',
        valueFrom: { resourceFieldRef: { containerName: 'web', resource: 'limits.cpu', divisor: '1m' } },
      },
      { name: 'CONFIG', valueFrom: { configMapKeyRef: { name: 'settings', key: 'level', optional: true } } },
      { name: 'SECRET', valueFrom: { secretKeyRef: { name: 'credentials', key: 'token', optional: false } } },
      {
        name: 'FILE',
        valueFrom: { fileKeyRef: { volumeName: 'files', path: 'app.env', key: 'MODE', optional: true } },
      },
    ];

    const rendered = render({ ...WEB, envs });

    expect(containerOf(rendered).env).toEqual(envs);
  });
});

describe('what is refused', () => {
  test.each([`${'a'.repeat(63)}b`, 'web.example', 'Web', '-web', 'web-', ''])('the name "%s"', (name) => {
    const error = refusal(WEB, name);

    expect(error.reason).toBe('InvalidName');
    expect(error.message).toContain(`metadata.name: "${name}"`);
  });

  test('a name of 63 characters is not', () => {
    const name = 'a'.repeat(63);

    expect(render(WEB, { name }).deployment.metadata?.name).toBe(name);
  });
});
