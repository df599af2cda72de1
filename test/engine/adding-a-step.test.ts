import { expect, it } from 'vitest';
import type { Change } from '../../src/contract/change.js';
import { textOf } from '../../src/cli/diff/text.js';
import type { Controller } from '../../src/contract/controller.js';
import { keyOf, refOf } from '../../src/contract/object.js';
import { NOTHING } from '../../src/contract/plan.js';
import type { ForeignStep } from '../../src/contract/plan.js';
import { resourceType } from '../../src/contract/resource.js';
import { Api } from '../../src/client/api.js';
import type { Hand, StepHandler } from '../../src/engine/plan/hand.js';
import { handlersOf, interpret } from '../../src/engine/plan/interpret.js';
import { DryRun } from '../../src/engine/preview/dry-run.js';
import { preview } from '../../src/engine/preview/preview.js';
import { Memory } from '../../src/engine/steps/memory.js';
import { newBench } from './support/bench.js';
import { configMap } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';

// docs/adding-a-step.md shows this, as far as the test.
const CONFIG_MAP = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
const NOTE = 'demo.example.com/note';

/** Note in an annotation of an object that others have made. */
interface NoteStep extends ForeignStep {
  readonly do: 'demo/note';
  readonly text: string;
}

const note: StepHandler<NoteStep> = {
  do: 'demo/note',

  async carryOut(step, hand) {
    const change = changeOf(step);
    if (change.action === 'unchanged') return change;
    const { api, reader, writer } = hand;
    const { uid, resourceVersion } = step.object.metadata;
    const body = { metadata: { uid, resourceVersion, annotations: { [NOTE]: step.text } } };
    const key = keyOf(step.object);
    await reader.store(step.object).write(key, writer, async () => ({
      object: await api.mergePatch(reader.resourceType(step.object), key, body),
    }));
    return change;
  },

  preview: (step) => Promise.resolve(changeOf(step)),
};

function changeOf({ object, text }: NoteStep): Change {
  const isThere = object.metadata.annotations?.[NOTE] === text;
  return { ref: refOf(object), action: isThere ? 'unchanged' : 'configured' };
}

const notes: Controller = {
  name: 'notes',
  kind: 'ConfigMap',
  watches: [
    {
      type: CONFIG_MAP,
      readOnly: true,
      keep: (object) => object,
      writes: ['patch'],
      mapsTo: (object) => [keyOf(object)],
    },
  ],
  handlers: [note],

  reconcile(key, reader) {
    const object = reader.get(CONFIG_MAP, key);
    if (!object) return NOTHING;
    const step: NoteStep = { do: 'demo/note', object, text: 'seen' };
    return { steps: [step], conclude: () => ({ status: [], events: [] }) };
  },
};

it('a step of its own is carried out once, and not by a dry hand', async () => {
  const { server, reader, hand, clock } = newBench(new FakeApiServer(), notes.watches);
  reader.store(CONFIG_MAP).observed(server.put(CONFIG_MAP, configMap('web', '1')));
  const pass = async (by: Hand): Promise<string | undefined> => {
    const plan = notes.reconcile('shop/web', reader, new Date(clock.now()));
    return (await interpret(plan, by, handlersOf(notes.handlers))).changes[0]?.action;
  };
  const dry = {
    api: new Api(new DryRun(server)),
    writer: { ...hand.writer, isDry: true },
    memory: new Memory(clock),
  };

  expect(await pass({ ...hand, ...dry, isDry: true })).toBe('configured');
  expect(server.writes).toEqual([]);
  expect(await pass(hand)).toBe('configured');
  expect(await pass(hand)).toBe('unchanged');
  expect(server.writes).toHaveLength(1);
});

it('a diff shows a step of its own', async () => {
  const server = new FakeApiServer();
  const after = server.put(CONFIG_MAP, configMap('web', '1'));
  const given = [{ before: after, after }];
  const now = (): Date => new Date('2026-01-01T00:00:00Z');
  const shown = await preview({ controllers: [notes], given, transport: server, now });

  expect(textOf(shown, (_, text) => text)).toBe('ConfigMap shop/web would be changed\n\n1 to change\n');
  expect(server.writes).toEqual([]);
});
