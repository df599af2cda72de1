import { readFileSync } from 'node:fs';
import { ApiObject, App, Chart } from 'cdk8s';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { AppService, type AppServiceProps } from '../../../src/kinds/app-service/construct.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { containerOf, refusal, render } from './render.js';

const WEB: AppServiceSpec = { size: 1, image: 'nginx:1.27' };

function example(name: string): AppServiceProps {
  const file = new URL(`../../../examples/${name}.yaml`, import.meta.url);
  return parse(readFileSync(file, 'utf8')) as AppServiceProps;
}

describe('what is rendered', () => {
  test('defaultChild is the Deployment', () => {
    const app = new AppService(new Chart(new App(), 'test'), 'AppService', {
      metadata: { name: 'web' },
      spec: WEB,
    });

    expect(ApiObject.of(app).kind).toBe('Deployment');
  });

  test("the tutorial's sample becomes a Deployment and a NodePort Service", async () => {
    const { metadata, spec } = example('appservice-sample');

    await expect(render(spec, metadata).yaml).toMatchFileSnapshot('__snapshots__/sample.yaml');
  });

  test('the custom resource is not changed', () => {
    const props = example('appservice-full');
    const before = structuredClone(props);

    render(props.spec, props.metadata);

    expect(props).toEqual(before);
  });

  test('resources and envs are rendered as given, in the order given', () => {
    // A quantity that is a number, as the API server stores it where a user wrote one.
    const resources = { limits: { cpu: 1, memory: '1.5Gi', 'example.com/accelerator': 2 } };
    const secretKeyRef = { name: 'credentials', key: 'token', optional: false };
    const envs: AppServiceSpec['envs'] = [
      ...[{ name: 'PLAIN', value: 'hello' }, { name: 'EMPTY', value: '' }, { name: 'ALONE' }],
      ...[
        { name: 'SECRET', valueFrom: { secretKeyRef } },
        { name: 'A', value: '$(PLAIN) world' },
      ],
    ];

    const container = containerOf(render({ ...WEB, envs, resources: resources as never }));

    expect(container.resources).toEqual(resources);
    expect(container.env).toEqual(envs);
  });
});

describe('ports', () => {
  test('none, or an empty list, make no Service and no container port', () => {
    const rendered = render(WEB);

    expect(rendered.objects.map(({ kind }) => kind)).toEqual(['Deployment']);
    expect(containerOf(rendered)).not.toHaveProperty('ports');
    expect(render({ ...WEB, ports: [], envs: [] }).objects).toEqual(rendered.objects);
  });

  test('of TCP and UDP on one number are two', () => {
    const rendered = render({
      ...WEB,
      ports: [
        { name: 'dns-udp', port: 53, protocol: 'UDP' },
        { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      ],
    });

    expect(containerOf(rendered).ports).toEqual([
      { containerPort: 53, protocol: 'UDP' },
      { containerPort: 53, protocol: 'TCP' },
    ]);
    expect(rendered.service?.spec?.ports?.map(({ targetPort, protocol }) => [targetPort, protocol])).toEqual([
      [53, 'UDP'],
      [53, 'TCP'],
    ]);
  });

  const http = { name: 'http', port: 80, targetPort: 'http' };
  const number = { name: 'number', port: 8080, targetPort: 80 };

  test.each([[[http]], [[http, number]], [[number, http]]])(
    'of which one has a name as its target name the container port by it: %j',
    (ports) => {
      const rendered = render({ ...WEB, ports });

      expect(containerOf(rendered).ports).toEqual([{ containerPort: 80, name: 'http', protocol: 'TCP' }]);
      expect(rendered.service?.spec?.ports).toEqual(ports.map((port) => ({ ...port, protocol: 'TCP' })));
    },
  );

  test('pass on a field that this release does not know', () => {
    const port = { port: 80, newField: 'kept' };

    expect(render({ ...WEB, ports: [port] }).service?.spec?.ports?.[0]).toHaveProperty('newField', 'kept');
  });

  test.each([
    ['8080/TCP, since it names 80/TCP', { ...number, port: 8080, targetPort: 'http' }],
    ['80/UDP, since it names 80/TCP', { ...http, name: 'b', protocol: 'UDP' }],
  ])('are refused where one name stands on two container ports: %s', (conflict, other) => {
    const error = refusal({ ...WEB, ports: [{ name: 'a', port: 53 }, http, other] });

    expect(error.reason).toBe('PortNameConflict');
    expect(error.message).toContain(
      `spec.ports[2].targetPort: "http" can't name container port ${conflict} already (spec.ports[1].targetPort)`,
    );
  });
});

test.each([`${'a'.repeat(63)}b`, 'web.example', 'Web', '-web', 'web-', ''])(
  'the name "%s" is refused',
  (name) => {
    const error = refusal(WEB, name);

    expect(error.reason).toBe('InvalidName');
    expect(error.message).toContain(`metadata.name: "${name}"`);
  },
);

test('a name of 63 characters is not', () => {
  const name = 'a'.repeat(63);

  expect(render(WEB, { name }).deployment.metadata?.name).toBe(name);
});
