import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { eventually } from '../support/cluster.js';
import { DevProject, noteCrd, noteSample } from '../support/dev-project.js';

const { kubectlPath } = openSandbox(inject('sandbox'));

describe('a project that is worked on', () => {
  let project: DevProject;
  beforeAll(() => {
    project = new DevProject();
    project.start();
  });
  afterAll(() => project.close());

  const kubectl = (...args: readonly string[]): Promise<string> => project.kubectl(kubectlPath, ...args);

  test('its samples become ready', async () => {
    // A whole control plane starts meanwhile.
    await eventually(
      () => {
        expect(project.output).toContain('Note default/hello: Ready Available');
      },
      { deadlineMilliseconds: 110_000 },
    );
    await project.told('ConfigMap default/hello: Ready');
    expect(await kubectl('get', 'configmap', 'hello', '-o', 'jsonpath={.data.text}')).toBe('Hello world');
  });

  test('a save of the construct changes its objects, and the field is printed', async () => {
    project.edit('src/kind.ts', 'Hello', 'Goodbye');

    await project.told('ConfigMap default/hello: .data.text "Hello world" -> "Goodbye world"');
    expect(await kubectl('get', 'configmap', 'hello', '-o', 'jsonpath={.data.text}')).toBe('Goodbye world');
  });

  test('a Secret among the children is listed, and none of its values is shown', async () => {
    const secret = (value: string): string =>
      `new ApiObject(this, 'Key', { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: { key: '${value}' } });`;
    project.edit('src/kind.ts', 'children: [', "children: [{ apiVersion: 'v1', kind: 'Secret' }, ");
    project.edit('src/kind.ts', 'new ApiObject(', `${secret('open sesame')}\n    new ApiObject(`);
    await project.told('Secret default/hello: created');
    await project.told('Secret default/hello: Ready');
    const { length } = project.output;
    project.edit('src/kind.ts', 'open sesame', 'open barley');
    await project.told('Secret default/hello: its data has changed', length);
    for (const value of ['open sesame', 'open barley'])
      for (const text of [value, Buffer.from(value).toString('base64')])
        expect(project.output).not.toContain(text);
  });

  test('prerequisites are applied, and again when they change; what kubectl refuses is reported', async () => {
    const settings = (value: string, kind = 'Secret'): string =>
      JSON.stringify({
        ...{ apiVersion: 'v1', kind, metadata: { name: 'settings', namespace: 'default' } },
        stringData: { value },
      });
    const stored = () =>
      kubectl('get', 'secret', 'settings', '-n', 'default', '-o', 'jsonpath={.data.value}');
    project.write('prerequisites/settings.json', settings('one'));
    await project.told('prerequisites/: secret/settings serverside-applied');
    expect(await stored()).toBe(Buffer.from('one').toString('base64'));
    project.write('prerequisites/settings.json', settings('two', 'Sekret'));
    await project.told('no matches for kind "Sekret"');
    project.write('prerequisites/settings.json', settings('two'));
    await project.told('No longer so: Not everything in prerequisites/ is applied');
    expect(await stored()).toBe(Buffer.from('two').toString('base64'));
    const theirs = noteCrd('by').replaceAll('dev.example.com', 'theirs.example.com');
    project.write(
      'prerequisites/theirs.yaml',
      `${theirs}---\n${noteSample('theirs', { text: 'a' }).replace('dev.', 'theirs.')}`,
    );
    await project.told('prerequisites/: note.theirs.example.com/theirs serverside-applied');
    await kubectl('delete', 'crd', 'notes.theirs.example.com');
  });

  test('a namespace that a kind names may come with the prerequisites, since rights are granted in it', async () => {
    const account = "{ apiVersion: 'v1', kind: 'ServiceAccount', namespaces: ['places'] }, ";
    project.edit('src/kind.ts', 'children: [', `children: [${account}`);
    await project.told('404 namespaces "places" not found; create it in prerequisites/');
    const place = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'places' } };
    const before = project.output.length;
    project.write('prerequisites/places.json', JSON.stringify(place));
    await project.told('prerequisites/: namespace/places serverside-applied');
    await eventually(async () => {
      expect(await kubectl('get', 'roles', '-n', 'places', '-o', 'name')).toContain('reconstruct');
    });
    // A controller that starts would load the mistake that the next test saves.
    await project.told('the controller runs what was loaded at', before);
    const after = project.output.length;
    project.edit('src/kind.ts', account, '');
    await project.told('the controller runs what was loaded at', after);
  });

  test('a mistake in the code is reported with its place, the controller goes on, and the next save mends it', async () => {
    project.edit('src/kind.ts', 'const note =', 'const note = =');
    await project.told("The configuration can't be loaded; the controller goes on with what was loaded at");
    await project.told(
      "reconstruct.config.mjs: can't be loaded: SyntaxError: Expression expected (at src/kind.ts:17:",
    );
    await kubectl('patch', 'note', 'hello', '--type=merge', '-p', '{"spec":{"text":"moon"}}');
    await project.told('Note default/hello: .spec.text "world" -> "moon"');
    await project.told('ConfigMap default/hello: .data.text "Goodbye world" -> "Goodbye moon"');

    project.edit('src/kind.ts', 'const note = =', 'const note =');
    await project.told("No longer so: The configuration can't be loaded");
  });

  test('a definition that cannot work is reported, with the line that makes it', async () => {
    project.edit('src/kind.ts', "new URL('../crd.yaml', import.meta.url)", "'nowhere.yaml'");
    await eventually(() => {
      expect(project.output).toMatch(/nowhere\.yaml.* \(at src\/kind\.ts:17:/);
    });
    const from = project.output.length;
    project.edit('src/kind.ts', "'nowhere.yaml'", "new URL('../crd.yaml', import.meta.url)");
    await project.told('No longer so: ', from);
  });

  test('a field that is new in the CRD, the construct and a sample', async () => {
    project.write('crd.yaml', noteCrd('by'));
    project.write('samples/hello.yaml', noteSample('hello', { text: 'sun', by: 'me' }));
    project.edit('src/kind.ts', '`Goodbye ${spec.text}`', '`Goodbye ${spec.text} by ${spec.by}`');

    await project.told('"Goodbye sun by me"');
  });

  test('a sample with a mistake is reported with its place, and the good one stays until it is mended', async () => {
    project.write('samples/hello.yaml', noteSample('hello', { txt: 'star', text: 'star' }));
    await project.told('samples/hello.yaml: document 1, line 6: spec.txt: unknown field; did you mean text?');
    expect(await kubectl('get', 'note', 'hello', '-o', 'jsonpath={.spec.text}')).toBe('sun');

    project.write('samples/hello.yaml', noteSample('hello', { text: 'star' }));
    await project.told('Note default/hello: .spec.text "sun" -> "star"');
  });

  test('a construct in an endless loop is stopped and reported, and other custom resources go on', async () => {
    project.edit('src/kind.ts', 'super(scope, id);', "super(scope, id);\n    while (spec.text === 'loop');");
    project.write('samples/loop.yaml', noteSample('loop', { text: 'loop' }));
    await project.told(
      "Note default/loop: Stalled RenderFailed: Note default/loop can't be rendered: the construct Note was stopped",
    );
    await kubectl('patch', 'note', 'hello', '--type=merge', '-p', '{"spec":{"by":"all"}}');
    await project.told(
      'ConfigMap default/hello: .data.text "Goodbye star by undefined" -> "Goodbye star by all"',
    );
    project.remove('samples/loop.yaml');
    await project.told('Note default/loop: is gone');
  });

  test('what the cluster refuses is reported too: a CRD that cannot follow the one before', async () => {
    project.write('crd.yaml', noteCrd('by').replace('Namespaced', 'Cluster'));
    await project.told('The CRD notes.dev.example.com is refused: ');
    await project.told('The samples of notes.dev.example.com stay as they are, since its CRD is refused');
    expect(await kubectl('get', 'note', 'hello', '-o', 'jsonpath={.spec.text}')).toBe('star');
    project.write('crd.yaml', noteCrd('by'));
    await project.told('No longer so: The cluster keeps the CRD that it has');
  });

  test('a kind that moves to another group leaves its CRD and its objects behind, and that is reported', async () => {
    const { length } = project.output;
    project.write('crd.yaml', noteCrd('by').replaceAll('dev.example.com', 'moved.example.com'));
    await project.told('The configuration has no kind notes.dev.example.com any more', length);
    await kubectl('delete', 'crd', 'notes.dev.example.com');

    project.write('crd.yaml', noteCrd('by'));
    await project.told('The configuration has no kind notes.moved.example.com any more', length);
    await eventually(async () => {
      expect(await kubectl('get', 'notes.dev.example.com', 'hello', '-o', 'jsonpath={.spec.text}')).toBe(
        'star',
      );
    });
  });

  test('a sample that is taken out goes', async () => {
    project.write('samples/second.yaml', noteSample('second', { text: 'soon' }));
    await project.told('Note default/second: Ready Available');
    project.remove('samples/second.yaml');

    await project.told('ConfigMap default/second: is gone');
    expect(await kubectl('get', 'notes', '-o', 'name')).toBe('note.dev.example.com/hello\n');
  });

  test('Ctrl-C leaves nothing behind', async () => {
    expect(await project.left()).not.toEqual([]);
    expect(await project.signal('SIGINT')).toBe(0);
    await eventually(async () => {
      expect(await project.left()).toEqual([]);
    });
    expect(project.output).not.toContain('ended early');
  });
});

describe('while it starts', () => {
  const project = new DevProject();
  afterAll(() => project.close());

  test.each([
    ['SIGHUP', 0],
    ['SIGTERM', 0],
    ['SIGKILL', 'SIGKILL'],
  ] as const)('%s leaves nothing behind', async (signal, end) => {
    project.start();
    await eventually(async () => {
      expect((await project.left()).join()).toContain('etcd');
    });

    expect(await project.signal(signal)).toBe(end);
    await eventually(async () => {
      expect(await project.left()).toEqual([]);
    });
  });
});
