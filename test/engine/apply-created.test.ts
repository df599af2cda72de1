import { describe, expect, it } from 'vitest';
import { APPLIED_HASH_ANNOTATION, CREATED_ANNOTATION } from '../../src/contract/names.js';
import { MAX_CREATED } from '../../src/values/projections.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { OwnStep } from '../../src/contract/plan.js';
import { asRecorded, createdOf, wasCreatedAs, withCreated } from '../../src/values/created.js';
import { keepStatus } from '../../src/values/projections.js';
import { deployment, newSetup, step } from './support/apply-setup.js';
import type { Setup } from './support/apply-setup.js';
import { DEPLOYMENT, failure } from './support/builders.js';

const PATHS = ['.spec'];
const created = (replicas: number, labels: object = { app: 'web' }, paths = PATHS): OwnStep => {
  const object = deployment(replicas);
  return { ...step({ ...object, metadata: { ...object.metadata, labels } as never }), createOnly: paths };
};
const live = ({ server }: Setup): AnyObject => server.get(DEPLOYMENT, 'shop/web')!;
const replicas = (setup: Setup): unknown => (live(setup).spec as { replicas: unknown }).replicas;

describe('An object with fields that stay as they were created', () => {
  it('is created as rendered, and records that; later renderings change its other fields alone', async () => {
    const setup = newSetup();
    expect((await setup.apply(created(1))).action).toBe('created');
    expect(createdOf(live(setup))).toEqual({ '.spec': [deployment(1).spec] });
    expect((await setup.apply(created(2))).action).toBe('unchanged');
    expect((await setup.apply(created(2, { app: 'web', tier: 'y' }))).action).toBe('configured');
    expect(replicas(setup)).toBe(1);
    expect(setup.last().body).toMatchObject({ metadata: { labels: { tier: 'y' } }, spec: { replicas: 1 } });
    expect(setup.server.writes).toHaveLength(2);
  });

  it('records what is there where it lacks a record', async () => {
    const setup = newSetup();
    await setup.apply(step(deployment(1)));
    const { action } = await setup.apply(created(2));
    expect([action, replicas(setup)]).toEqual(['configured', 1]);
    expect(createdOf(live(setup))).toEqual({ '.spec': [deployment(1).spec] });
    const writes = setup.server.writes.length;
    await setup.apply(created(2));
    expect(setup.server.writes).toHaveLength(writes);
  });

  it('records fields that are named later, and keeps the others', async () => {
    const setup = newSetup();
    await setup.apply(created(1, {}, ['.spec.replicas']));
    await setup.apply(created(2, {}, ['.spec.replicas', '.spec.template', '.spec.paused']));
    const { template } = deployment(1).spec as { template: object };
    expect(createdOf(live(setup))).toEqual({
      ...{ '.spec.replicas': [1], '.spec.template': [template], '.spec.paused': [] },
    });
  });

  it('is recreated as rendered, where that is asked for and another field cannot be changed', async () => {
    const setup = newSetup();
    await setup.apply(created(1));
    const causes = [{ reason: 'FieldValueInvalid', message: 'Invalid value: {}: field is immutable' }];
    const answers = [failure(422, 'Invalid', 'field is immutable', { causes })];
    setup.server.intercept = ({ method }) => (method === 'PATCH' ? answers.shift() : undefined);
    const wanted = { ...created(2, { app: 'web', tier: 'y' }), recreate: 'orphan' } as const;
    expect((await setup.apply(wanted)).action).toBe('recreated');
    const deletion = setup.server.requests.find(({ method }) => method === 'DELETE');
    expect(deletion?.body).toMatchObject({ propagationPolicy: 'Orphan' });
    expect(replicas(setup)).toBe(2);
    expect(createdOf(live(setup))).toEqual({ '.spec': [deployment(2).spec] });
  });

  it('refuses more than an annotation takes, by name, size and remedy', async () => {
    const setup = newSetup();
    const noise = Array.from({ length: MAX_CREATED }, (_, index) => (index * 7919 ** 2).toString(36)).join();
    const { error } = await setup.apply({ ...step(deployment(1, { image: noise })), createOnly: PATHS });
    expect(error).toMatchObject({ reason: 'CreateOnlyTooLarge' });
    expect(error!.message).toMatch(
      /^Deployment shop\/web: the record of \.spec has \d+ characters, compressed, and its annotation takes 32768; name less in createOnly/,
    );
    expect(setup.server.writes).toEqual([]);
  });
});

describe('A record of created fields', () => {
  const recorded = withCreated(deployment(1), PATHS);
  const withRecord = (text: string): AnyObject => ({
    ...recorded,
    metadata: { ...recorded.metadata, annotations: { [CREATED_ANNOTATION]: text } },
  });

  it('is read back, and left out where it is none', () => {
    expect(createdOf(recorded)).toEqual({ '.spec': [deployment(1).spec] });
    const bomb = withRecord(
      withCreated({ ...deployment(1), spec: 'x'.repeat(3_000_000) }, PATHS).metadata.annotations![
        CREATED_ANNOTATION
      ]!,
    );
    for (const none of [deployment(1), withRecord('nothing'), withRecord(''), bomb])
      expect(createdOf(none)).toBeUndefined();
    expect(asRecorded(deployment(2), withRecord('nothing'))).toEqual(deployment(2));
    expect(asRecorded(deployment(2), recorded)).toEqual(recorded);
  });

  it('says whether an object is made of what is rendered', () => {
    expect(wasCreatedAs(recorded, deployment(1), PATHS)).toBe(true);
    expect(wasCreatedAs(recorded, deployment(2), PATHS)).toBe(false);
    expect(wasCreatedAs(deployment(1), deployment(2), PATHS)).toBe(true);
  });

  it('is kept in memory only where it is as we have applied it', () => {
    const owned = (...names: string[]): object => ({
      'f:metadata': { 'f:annotations': Object.fromEntries(names.map((name) => [`f:${name}`, {}])) },
    });
    const managed = (fieldsV1: object): AnyObject => ({
      ...recorded,
      metadata: {
        ...recorded.metadata,
        managedFields: [{ manager: 'w', operation: 'Apply', fieldsV1 }],
      } as never,
    });
    const kept = (object: AnyObject): unknown => keepStatus(object).metadata.annotations;
    expect(kept(managed(owned(APPLIED_HASH_ANNOTATION, CREATED_ANNOTATION)))).toEqual(
      recorded.metadata.annotations,
    );
    expect(kept(managed(owned(APPLIED_HASH_ANNOTATION)))).toBeUndefined();
    expect(kept(recorded)).toBeUndefined();
  });
});
