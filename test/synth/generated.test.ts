import { ApiObject } from 'cdk8s';
import { expect, test } from 'vitest';
import { defineKind } from '../../src/author/define-kind.js';
import { render } from '../../src/testing/render.js';
import { synth } from '../../src/cli/synth/synth.js';
import { loadKind } from '../support/bundle.js';
import { folderWith } from './fixtures.js';

const { kind } = await loadKind('test/support/kinds/vault.config.mjs');
const cr = {
  ...{ apiVersion: 'test.example.com/v1', kind: 'Vault', metadata: { name: 'web', namespace: 'shop' } },
  spec: {},
};

test('generated values are rendered as references to a Secret that isn’t, and a note says so', async () => {
  const secretKeyRef = { name: 'web-vault-generated', key: 'password' };
  expect(render(kind, cr)).toMatchObject([
    {
      kind: 'Deployment',
      spec: {
        template: {
          // Always the same, as long as there is no cluster.
          metadata: { annotations: { 'checksum/generated': 'unknown-without-a-cluster' } },
          spec: { containers: [{ env: [{ name: 'PASSWORD', valueFrom: { secretKeyRef } }] }] },
        },
      },
    },
  ]);
  const notes: string[] = [];
  const sources = [`${folderWith({ 'web.yaml': JSON.stringify(cr) })}/web.yaml`];
  const [file] = await synth({ kinds: [kind], sources, note: (line) => notes.push(line) });
  expect(file?.text).not.toContain('kind: Secret');
  expect(notes).toEqual([
    expect.stringMatching(
      /web\.yaml.*: Secret web-vault-generated isn't rendered: the operator makes its values$/,
    ),
  ]);
});

test('a construct that renders a Secret of that name is refused', () => {
  const { construct } = kind;
  class Twice extends construct {
    constructor(...given: ConstructorParameters<typeof construct>) {
      super(...given);
      new ApiObject(this, 'Secret', {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'web-vault-generated' },
      });
    }
  }
  const children = [...kind.children, { apiVersion: 'v1', kind: 'Secret' }];
  const twice = defineKind({ crd: kind.crd, construct: Twice, generated: { password: {} }, children });
  expect(() => render(twice, cr)).toThrow('Vault shop/web renders Secret shop/web-vault-generated twice');
});
