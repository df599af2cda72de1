import { expect, test } from 'vitest';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { readSamples, render } from '../../src/testing/render.js';
import { folderWith } from '../synth/fixtures.js';

const { apiVersion, kind } = appService.type;
const web = (spec: object): object => ({
  ...{ apiVersion, kind, spec },
  metadata: { name: 'web', namespace: 'shop' },
});

test('a custom resource is rendered with the defaults of its schema', () => {
  const objects = render(appService, web({ size: 1, image: 'nginx:1', ports: [{ port: 53 }] }));

  expect(objects.map((object) => object.kind)).toEqual(['Deployment', 'Service']);
  expect(objects[1]).toHaveProperty('spec.ports.0.protocol', 'TCP');
});

test('each mistake in it is reported with its place', () => {
  expect(() => render(appService, web({ size: -1, imag: 'nginx:1' }))).toThrow(
    /spec\.imag: unknown field[^]*spec\.size/,
  );
});

test('what is of another kind is refused', () => {
  expect(() => render(appService, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } })).toThrow(
    /Pod/,
  );
});

test('what is given beside it is named, or refused with the names that there are', () => {
  const policy = { appservice: { hosts: ['example.com'] } };

  expect(() => render(appService, web({}), policy as never)).toThrow(
    'render: unknown option appservice; there are policy, settings, references, observed',
  );
});

test('a kind that renders all at once is refused', () => {
  expect(() => render(jobWatcher, web({}))).toThrow('reconstruct synth');
});

test.each([
  ['what is of other kinds is left out', 'kind: Database', undefined],
  [
    'a mistake in the name of the kind is reported',
    'kind: AppServise',
    /document 1, .*did you mean AppService\?/,
  ],
])('of a file with samples, %s', async (_, first, mistake) => {
  const file = `
apiVersion: ${apiVersion}
${first}
metadata: { name: shop }
---
apiVersion: ${apiVersion}
kind: ${kind}
metadata: { name: web }
spec: { image: nginx, size: 1 }
`;
  const read = readSamples(appService, `${folderWith({ 'sample.yaml': file })}/sample.yaml`);

  if (mistake) await expect(read).rejects.toThrow(mistake);
  else expect((await read).map(({ metadata }) => metadata.name)).toEqual(['web']);
});
