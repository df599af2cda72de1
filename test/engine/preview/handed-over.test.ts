import { describe, expect, it } from 'vitest';
import type { ApplyStep } from '../../../src/contract/controller.js';
import { HandedOver } from '../../../src/engine/preview/preview.js';
import { anObject, DEPLOYMENT } from '../support/builders.js';

const deployment = (spec?: object) => anObject(DEPLOYMENT, 'web', {}, spec ? { spec } : {});
const handing = (spec?: object, fieldManager = 'widget-replicas'): ApplyStep => ({
  ...{ object: deployment(spec), fieldManager, handOver: true },
});
const applying = (spec: object): ApplyStep => ({
  object: deployment(spec),
  fieldManager: 'widget-controller',
});

describe('What is handed over', () => {
  it('keeps its value when whoever had it lets go', () => {
    const handed = new HandedOver([handing({ replicas: 3 }), applying({ paused: true })]);
    expect(handed.without(deployment({ paused: true }))).toEqual(deployment({ paused: true }));
    expect(handed.laidOver(deployment({ paused: true, replicas: 1 }))).toEqual(
      deployment({ paused: true, replicas: 3 }),
    );
  });

  it('is left out of what is tried, and has the last word of who applies it in the end', () => {
    const rolling = { rollingUpdate: { maxSurge: '25%' } };
    const steps = [
      handing({ strategy: rolling }, 'widget-strategy'),
      handing({ strategy: { type: 'Recreate' } }, 'widget-strategy'),
      applying({ replicas: 2, strategy: { type: 'Recreate' } }),
    ];
    const handed = new HandedOver(steps);

    expect(handed.without(steps[2]!.object)).toEqual(deployment({ replicas: 2 }));
    const tried = deployment({ replicas: 2, strategy: { type: 'RollingUpdate', ...rolling } });
    expect(handed.laidOver(tried)).toEqual(deployment({ replicas: 2, strategy: { type: 'Recreate' } }));
  });

  it('is nothing where a step only lets go', () => {
    const handed = new HandedOver([handing(), applying({ replicas: 2 })]);
    expect(handed.without(deployment({ replicas: 2 }))).toEqual(deployment({ replicas: 2 }));
    expect(handed.laidOver(deployment({ replicas: 2 }))).toEqual(deployment({ replicas: 2 }));
  });

  it('is of one object, and leaves others as they are', () => {
    const handed = new HandedOver([handing({ replicas: 3 })]);
    const other = anObject(DEPLOYMENT, 'api', {}, { spec: { replicas: 1 } });
    expect(handed.laidOver(other)).toBe(other);
  });
});
