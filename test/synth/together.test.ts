import { describe, expect, it } from 'vitest';
import type { Kind, KindContext, RenderTogether } from '../../src/contract/kind.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import type { InputError } from '../../src/validate/problem.js';
import { synth } from '../../src/cli/synth/synth.js';
import type { SynthOptions } from '../../src/cli/synth/synth.js';
import { widgetKind } from './fixtures.js';

const document = (name: string, image = 'nginx', kind = 'Widget'): string =>
  `---\napiVersion: demo.example.com/v1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: shop }\nspec: { image: ${image} }\n`;

const shared = (data: Readonly<Record<string, string>>): AnyObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'all', namespace: 'ops' },
  data,
});

const imageOf = ({ spec }: CustomResource): string => (spec as { image: string }).image;

/** Everybody's image in one object; an image may be there once. */
const together: RenderTogether = (resources) => ({
  manifests: [
    { objects: [shared(Object.fromEntries(resources.map((cr) => [cr.metadata.name, imageOf(cr)])))] },
  ],
  findings: resources
    .filter((cr, index) => resources.findIndex((other) => imageOf(other) === imageOf(cr)) < index)
    .map((cr) => ({ level: 'error', of: cr, path: ['spec', 'image'], message: `${imageOf(cr)} is taken` })),
});

function kindWith(render: RenderTogether): Kind {
  const { construct, children, ...kind } = widgetKind();
  return { ...kind, rendering: { together: render } };
}

const synthText = (text: string, render = together, options: Partial<SynthOptions> = {}) =>
  synth({
    kinds: [kindWith(render), widgetKind({ kind: 'Gadget' })],
    sources: ['-'],
    stdin: () => Promise.resolve(Buffer.from(text)),
    ...options,
  });

const problemsOf = async (files: Promise<unknown>): Promise<readonly string[]> =>
  files.then(
    () => [],
    (error: unknown) => (error as InputError).lines,
  );

describe('Custom resources that are rendered together', () => {
  it('make one file, whatever their order, beside those that are rendered one by one', async () => {
    const files = await synthText(
      document('b', 'two') + document('own', 'x', 'Gadget') + document('a', 'one'),
    );
    expect(files.map(({ name }) => name)).toEqual([
      'shop.gadget.demo.example.com.own.yaml',
      'widget.demo.example.com.yaml',
    ]);
    expect(files[1]?.text).toContain('data:\n  a: one\n  b: two\n');
    expect(await synthText(document('a', 'one') + document('b', 'two'))).toEqual([files[1]]);
  });

  it('are refused as a whole where they contradict each other, with place and reason', async () => {
    const problems = await problemsOf(synthText(document('a') + document('b') + document('c', 'other')));
    expect(problems).toEqual(['<stdin>: document 2, line 10: nginx is taken']);
  });

  it('of a kind whose controllers make all objects are refused where nothing else is rendered', async () => {
    const none: RenderTogether = () => ({ manifests: [] });
    const message = 'Widget: renders no objects: its controllers make them in a cluster; leave it out here';
    expect(await problemsOf(synthText(document('a'), none))).toEqual([message]);
    const notes: string[] = [];
    const both = document('a') + document('own', 'x', 'Gadget');
    const files = await synthText(both, none, { note: (line) => void notes.push(line) });
    expect([files.length, notes]).toEqual([1, [message]]);
    const said: RenderTogether = () => ({ manifests: [], findings: [{ level: 'note', message: 'none' }] });
    expect(await synthText(document('a'), said)).toEqual([]);
  });

  it('are given flags, the kind’s section of the policy, and a renderer for constructs', async () => {
    let seen: KindContext | undefined;
    const look: RenderTogether = ([cr], context) => {
      seen = context;
      return { manifests: [{ objects: context.render(widgetKind(), cr!) }] };
    };
    const [file] = await synthText(document('a'), look, {
      flags: { '--demo': 'x' },
      files: { policy: { widget: { most: 1 }, other: {} } },
    });
    expect(seen).toMatchObject({ flags: { '--demo': 'x' }, policy: { most: 1 } });
    expect(file?.text).toContain('kind: ConfigMap');
  });
});
