import { ApiObject } from 'cdk8s';
import type { Construct } from 'constructs';
import { defineKind } from '../../../src/contract/define-kind.js';
import type { ApplyStep, Controller, Reader } from '../../../src/contract/controller.js';
import type { CustomResourceProps, Kind } from '../../../src/contract/kind.js';
import { plantedCrd } from './crd.js';
import type { PlantedSpec } from './crd.js';
import { Sound, sound, soundProps } from './sound.js';

class Timestamped extends Sound {
  protected override settings(name: string, spec: PlantedSpec): Record<string, string> {
    return { ...super.settings(name, spec), rendered: new Date().toISOString().slice(0, 10) };
  }
}

/** What it renders differs each day. */
export const timestamp = defineKind({ ...soundProps, construct: Timestamped });

class LaterTimestamped extends Sound {
  protected override settings(name: string, spec: PlantedSpec): Record<string, string> {
    const rendered = new Date().toISOString().slice(0, 10);
    return spec.color === undefined ? { rendered } : super.settings(name, spec);
  }
}

/** The same under the second sample alone, when the renderer has made its comparison. */
export const laterTimestamp = defineKind({ ...soundProps, construct: LaterTimestamped });

/** What its parts say is counted for each process, so that a restart writes them again. */
export const counting = ((): Kind => {
  let processes = 0;
  const wrapped = (): Kind => {
    const started = String(++processes);
    return withSteps((step) => {
      if (!step.object.metadata.name.endsWith('-parts')) return step;
      return { ...step, object: { ...step.object, data: { ...(step.object.data as object), started } } };
    });
  };
  return { ...sound, controllers: (context) => wrapped().controllers(context) };
})();

const colors = new Map<string, string>();

class Remembering extends Sound {
  protected override settings(name: string, spec: PlantedSpec): Record<string, string> {
    const color = spec.color ?? colors.get(name);
    if (color !== undefined) colors.set(name, color);
    return color === undefined ? {} : { color };
  }
}

/** A field that is removed stays as it was. */
export const remembered = defineKind({ ...soundProps, construct: Remembering });

class Defaulted extends Sound {
  protected override pulling(): object {
    return {};
  }
}

/** The API server has chosen when the first image is pulled, by its tag, and keeps to that. */
export const defaulted = defineKind({
  ...{ ...soundProps, construct: Defaulted },
  crd: plantedCrd({ freeImage: true }),
});

class Colliding extends Sound {
  protected override partsName(): string {
    return 'parts';
  }
}

/** Two custom resources want one object. */
export const colliding = defineKind({ ...soundProps, construct: Colliding });

/** What it makes isn't among its children. */
export const undeclared = defineKind({ ...soundProps, children: soundProps.children.slice(1) });

/** It is ready whatever its children say. */
export const lying = defineKind({
  ...soundProps,
  status: () => ({ readiness: { phase: 'ready', reason: 'Fine', message: 'All is well' } }),
});

/** It is never done, whatever its children say. */
export const waiting = defineKind({
  ...soundProps,
  status: () => ({ readiness: { phase: 'progressing', reason: 'Waiting', message: 'Something is missing' } }),
});

class Refused extends Sound {
  constructor(scope: Construct, id: string, props: CustomResourceProps<PlantedSpec>) {
    super(scope, id, props);
    new ApiObject(this, 'Service', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: props.metadata.name } },
      spec: { ports: [{ port: 0 }] },
    });
  }
}

/** The API server takes none of its Services. */
export const refused = defineKind({
  ...{ ...soundProps, construct: Refused },
  children: [...soundProps.children, { apiVersion: 'v1', kind: 'Service' }],
});

/** Its parts can only be replaced as a whole. */
export const unkeyed = defineKind({ ...soundProps, crd: plantedCrd({ keyed: false }) });

/** Somebody else's plan, with other steps. */
function withSteps(change: (step: ApplyStep, key: string, reader: Reader) => ApplyStep): Kind {
  return {
    ...sound,
    controllers: (context) =>
      sound.controllers(context).map((controller): Controller => {
        const { name, kind, watches } = controller;
        return {
          ...{ name, kind, watches },
          reconcile: (key, reader, now) => {
            const plan = controller.reconcile(key, reader, now);
            return { ...plan, apply: plan.apply.map((step) => change(step, key, reader)) };
          },
        };
      }),
  };
}

/** One of its children belongs to nobody, and stays. */
export const orphaning = withSteps(({ owner, ...step }) =>
  step.object.metadata.name.endsWith('-parts') ? step : { ...step, ...(owner && { owner }) },
);

/** What a child says depends on whether another was seen before it. */
export const ordered = ((): Kind => {
  const wrapped = (): Kind => {
    const first = new Map<string, string>();
    return withSteps((step, key, reader) => {
      if (!step.object.metadata.name.endsWith('-parts')) return step;
      const seen = reader.get({ apiVersion: 'apps/v1', kind: 'Deployment' }, key) ? 'after' : 'before';
      const order = first.get(key) ?? seen;
      first.set(key, order);
      const data = { ...(step.object.data as object), order };
      return { ...step, object: { ...step.object, data } };
    });
  };
  // Each controller remembers for itself, and forgets with its process.
  return { ...sound, controllers: (context) => wrapped().controllers(context) };
})();
