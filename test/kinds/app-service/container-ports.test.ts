import { expect, test } from 'vitest';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { containerOf, refusal, render } from './render.js';

const WEB: AppServiceSpec = { size: 1, image: 'nginx:1.27' };

test('without ports there is no Service and no container port', () => {
  const rendered = render(WEB);

  expect(rendered.objects.map(({ kind }) => kind)).toEqual(['Deployment']);
  expect(containerOf(rendered)).not.toHaveProperty('ports');
});

test('empty lists are like none', () => {
  expect(render({ ...WEB, ports: [], envs: [] }).objects).toEqual(render(WEB).objects);
});

test('TCP and UDP on one number are two ports', () => {
  const rendered = render({
    ...WEB,
    ports: [
      { name: 'dns-udp', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      { name: 'metrics', port: 9153 },
    ],
  });

  expect(containerOf(rendered).ports).toEqual([
    { containerPort: 53, protocol: 'UDP' },
    { containerPort: 53, protocol: 'TCP' },
    { containerPort: 9153, protocol: 'TCP' },
  ]);
  expect(rendered.service?.spec?.ports?.map(({ targetPort, protocol }) => [targetPort, protocol])).toEqual([
    [53, 'UDP'],
    [53, 'TCP'],
    [9153, 'TCP'],
  ]);
});

test('a named targetPort names the container port with the number of "port"', () => {
  const rendered = render({ ...WEB, ports: [{ port: 8080, targetPort: 'http' }] });

  expect(containerOf(rendered).ports).toEqual([{ containerPort: 8080, name: 'http', protocol: 'TCP' }]);
  expect(rendered.service?.spec?.ports).toEqual([{ port: 8080, targetPort: 'http', protocol: 'TCP' }]);
});

test.each([
  {
    order: 'first',
    ports: [
      { port: 80, targetPort: 'http' },
      { port: 8080, targetPort: 80 },
    ],
  },
  {
    order: 'last',
    ports: [
      { port: 8080, targetPort: 80 },
      { port: 80, targetPort: 'http' },
    ],
  },
])('a container port that is also reached by number keeps its name, which comes $order', ({ ports }) => {
  const named = ports.map((port, index) => ({ name: `p${index}`, ...port }));

  const rendered = render({ ...WEB, ports: named });

  expect(containerOf(rendered).ports).toEqual([{ containerPort: 80, name: 'http', protocol: 'TCP' }]);
});

test('a field of a port that this release does not know is passed on', () => {
  const port = { port: 80, newField: 'kept' };

  expect(render({ ...WEB, ports: [port] }).service?.spec?.ports?.[0]).toHaveProperty('newField', 'kept');
});

test.each([
  {
    title: 'one name on two numbers',
    ports: [
      { name: 'a', port: 53 },
      { name: 'b', port: 80, targetPort: 'http' },
      { name: 'c', port: 8080, targetPort: 'http' },
    ],
    message:
      'spec.ports[2].targetPort: "http" can\'t name container port 8080/TCP, since it names 80/TCP already ' +
      '(spec.ports[1].targetPort); a name stands on one container port only. ' +
      'Use the number of the container port, or another name',
  },
  {
    title: 'one name on two protocols',
    ports: [
      { name: 'a', port: 53, protocol: 'UDP', targetPort: 'dns' },
      { name: 'b', port: 53, protocol: 'TCP', targetPort: 'dns' },
    ],
    message:
      'spec.ports[1].targetPort: "dns" can\'t name container port 53/TCP, since it names 53/UDP already',
  },
])('$title is refused', ({ ports, message }) => {
  const error = refusal({ ...WEB, ports });

  expect(error.reason).toBe('PortNameConflict');
  expect(error.message).toContain(message);
});
