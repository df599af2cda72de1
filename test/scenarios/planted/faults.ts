import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { decorate } from '../../../src/author/decorate.js';
import type { DecoratedProps } from '../../../src/author/decorate.js';
import { defineKind } from '../../../src/author/define-kind.js';
import type { Controller, Reader } from '../../../src/contract/controller.js';
import type { OwnStep, Plan, Step } from '../../../src/contract/plan.js';
import { share } from '../../../src/engine/steps/share.js';
import type { ShareStep } from '../../../src/engine/steps/share.js';
import type { CustomResourceProps, Kind, StandaloneController } from '../../../src/contract/kind.js';
import { ADOPT_BY_ANNOTATION, DRIFT_ANNOTATION, PAUSED_ANNOTATION } from '../../../src/contract/names.js';
import { objectKey } from '../../../src/contract/object.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { keepStatus } from '../../../src/values/projections.js';
import { plantedCrd } from './crd.js';
import type { PlantedSpec } from './crd.js';
import { Sound, sound, soundProps } from './sound.js';

class Noted extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name } }: DecoratedProps) {
    super(scope, id);
    new ApiObject(this, 'note', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
  }
}

const notes = {
  ...{ name: 'notes', apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', construct: Noted },
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
};

/** What is made of an object that has the label once stays when it loses it. */
export const clinging: StandaloneController = {
  ...decorate({ ...notes, selector: 'noted' }),
  controllers: (context) => decorate({ ...notes, selector: '!never' }).controllers(context),
};

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
function withSteps(change: (step: OwnStep, key: string, reader: Reader) => Step): Kind {
  return {
    ...sound,
    controllers: (context) =>
      sound.controllers(context).map((controller): Controller => {
        const { name, kind, watches } = controller;
        return {
          ...{ name, kind, watches, handlers: [share] },
          reconcile: (key, reader, now) => {
            const plan = controller.reconcile(key, reader, now);
            const steps = plan.steps.map((step) => (step.do === 'own' ? change(step, key, reader) : step));
            return { ...plan, steps };
          },
        };
      }),
  };
}

/** One of its children belongs to nobody, and stays. */
export const orphaning = withSteps((step) => {
  const { object, fieldManager } = step;
  const shared: ShareStep = { do: 'engine/share', object, fieldManager };
  return object.metadata.name.endsWith('-parts') ? shared : step;
});

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

type FaultyReconcile = (plan: (reader: Reader) => Plan, reader: Reader) => Plan;

/** A kind whose controller has a fault. */
function withFault(kind: Kind, fault: FaultyReconcile): Kind {
  return {
    ...kind,
    controllers: (context) =>
      kind.controllers(context).map((controller): Controller => {
        const { name, kind: of, watches, lookups, handlers } = controller;
        return {
          ...{ name, kind: of, watches, ...(lookups && { lookups }), ...(handlers && { handlers }) },
          reconcile: (key, reader, now) => fault((seen) => controller.reconcile(key, seen, now), reader),
        };
      }),
  };
}

/** Nothing waits for what it depends on. */
export const hasty = (kind: Kind): Kind =>
  withFault(kind, (plan, reader) => {
    const made = plan(reader);
    return {
      ...made,
      steps: made.steps.map((step) => (step.do === 'own' ? { ...step, waitsFor: [] } : step)),
    };
  });

/** What the children say isn't seen. */
export const blind = (kind: Kind): Kind =>
  withFault(kind, (plan, reader) => {
    const silent = Object.create(reader) as { controlledBy: Reader['controlledBy'] };
    silent.controlledBy = (...args) => reader.controlledBy(...args).map(({ status: _, ...child }) => child);
    return plan(silent as Reader);
  });

/** The finalizer comes after all else. */
export const unsecured = (kind: Kind): Kind =>
  withFault(kind, (plan, reader) => {
    const made = plan(reader);
    const [first, barrier, ...others] = made.steps;
    const isFirst = first?.do === 'finalizer' && first.isPresent && barrier?.do === 'barrier';
    return isFirst ? { ...made, steps: [...others, first] } : made;
  });

/** What is elsewhere is forgotten with its owner. */
export const uncollected = (kind: Kind): Kind =>
  withFault(kind, (plan, reader) => {
    const made = plan(reader);
    return { ...made, steps: made.steps.filter((step) => step.do !== 'collect') };
  });

/** Nothing stays as it was created. */
export const thawed = (kind: Kind): Kind =>
  withFault(kind, (plan, reader) => {
    const made = plan(reader);
    const steps = made.steps.map((step) => (step.do === 'own' ? { ...step, createOnly: [] } : step));
    return { ...made, steps };
  });

/** A rotation replaces the first value alone. */
export const halfRotated = (kind: Kind): Kind =>
  withFault(kind, (plan, reader) => {
    const made = plan(reader);
    const isThere = (object: AnyObject): boolean =>
      reader.get(object, objectKey(object.metadata.namespace, object.metadata.name)) !== undefined;
    return {
      ...made,
      steps: made.steps.map((step) =>
        step.do === 'generate' && isThere(step.object)
          ? { ...step, values: Object.fromEntries(Object.entries(step.values).slice(0, 1)) }
          : step,
      ),
    };
  });

/** Annotations of the custom resource aren't read. */
const unread = (annotation: string): Kind =>
  withFault(sound, (plan, reader) => {
    const without = Object.create(reader) as { get: Reader['get'] };
    without.get = (type, key) => {
      const object = reader.get(type, key);
      const { [annotation]: _, ...annotations } = object?.metadata.annotations ?? {};
      return object && { ...object, metadata: { ...object.metadata, annotations } };
    };
    return plan(without as Reader);
  });
export const unpaused = unread(PAUSED_ANNOTATION);
export const uncontrolled = unread(DRIFT_ANNOTATION);

class Serial extends Sound {
  constructor(scope: Construct, id: string, props: CustomResourceProps<PlantedSpec>) {
    super(scope, id, props);
    const { serial } = props.status as { readonly serial?: number };
    new ApiObject(this, 'Serial', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${props.metadata.name}-${serial ?? 0}` } },
    });
  }
}

/** Where its status is lost, it makes another object, whatever there is. */
export const forgetful = defineKind({
  ...{ ...soundProps, construct: Serial, remembers: true },
  status: ({ last = {}, now }) => ({ fields: { serial: last.serial ?? now.getTime() } }),
});

/** Whatever has the name of an object of it is taken as handed over. */
export const greedy: Kind = {
  ...sound,
  controllers: (context) =>
    sound.controllers(context).map((controller): Controller => {
      const keep = (object: AnyObject): AnyObject => {
        const kept = keepStatus(object);
        const offer = `Planted/${object.metadata.name.replace(/-parts$/, '')}`;
        const annotations = { ...kept.metadata.annotations, [ADOPT_BY_ANNOTATION]: offer };
        return { ...kept, metadata: { ...kept.metadata, annotations } };
      };
      return {
        ...{ name: controller.name, kind: controller.kind },
        reconcile: (...args) => controller.reconcile(...args),
        watches: controller.watches.map((watch) =>
          watch.writes?.includes('create') ? { ...watch, keep } : watch,
        ),
      };
    }),
};
