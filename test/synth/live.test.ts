import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { readCustomResources } from '../../src/validate/custom-resource.js';
import { folderWith, widgetKind } from './fixtures.js';

const document = (metadata: string, spec = 'image: nginx'): string =>
  `apiVersion: demo.example.com/v1\nkind: Widget\nmetadata: { ${metadata} }\nspec: { ${spec} }\n`;
const live = (spec: object): AnyObject => ({
  ...{ apiVersion: 'demo.example.com/v1', kind: 'Widget', metadata: { name: 'web', namespace: 'shop' } },
  spec,
});

async function read(text: string, found?: AnyObject) {
  const asked: string[] = [];
  const folder = folderWith({ 'a.yaml': text });
  const inputs = await readCustomResources({
    ...{ sources: [join(folder, 'a.yaml')], kinds: [widgetKind()], namespace: 'shop' },
    live: (type, key) => {
      asked.push(`${type.apiVersion} ${type.plural} ${key}`);
      return Promise.resolve(found);
    },
  });
  return { asked, inputs };
}

describe('What the cluster has', () => {
  it('is asked for by name and namespace, and goes with the document', async () => {
    const found = live({ image: 'nginx' });
    const { asked, inputs } = await read(document('name: web, namespace: test'), found);
    expect(asked).toEqual(['demo.example.com/v1 widgets test/web']);
    expect(inputs).toMatchObject([{ live: found, type: { apiVersion: 'demo.example.com/v1' } }]);
    expect((await read(document('name: web'))).asked).toEqual(['demo.example.com/v1 widgets shop/web']);
    expect((await read(document('name: web'))).inputs[0]).not.toHaveProperty('live');
  });

  it('is not asked for under a name that nothing can have', async () => {
    await expect(read(document('name: ../web'))).rejects.toThrow('is not a DNS subdomain name');
    await expect(read(document('name: 5'))).rejects.toThrow('metadata.name');
  });

  it('makes the document an update: what was wrong before and stays as it is passes', async () => {
    const tooLong = document('name: web', 'image: nginx, code: abcdefgh');
    await expect(read(tooLong)).rejects.toThrow('spec.code');
    await expect(read(tooLong, live({ image: 'nginx', code: 'other-one' }))).rejects.toThrow('spec.code');
    expect((await read(tooLong, live({ image: 'nginx', code: 'abcdefgh' }))).inputs).toHaveLength(1);
  });
});
