import type { OwnStep } from '../../../src/contract/plan.js';
import type { AnyObject, CustomResource, OwnerReference } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import type { ApiResponse } from '../../../src/client/transport.js';
import { silentLogger } from '../../../src/telemetry/logger.js';
import type { Logger } from '../../../src/telemetry/logger.js';

export const DEPLOYMENT = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });
export const SERVICE = resourceType({ apiVersion: 'v1', kind: 'Service' });
export const CONFIG_MAP = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
export const WIDGET = resourceType({ apiVersion: 'demo.example.com/v1', kind: 'Widget' });

export const MANAGER = 'widget-controller';
export const STATUS_MANAGER = 'widget-status';

export interface Meta {
  readonly namespace?: string | undefined;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly deletionTimestamp?: string;
  readonly managedFields?: readonly object[];
}

/** Any object, in the namespace `shop` unless told otherwise. */
export function anObject(
  type: { readonly apiVersion: string; readonly kind: string },
  name: string,
  meta: Meta = {},
  rest: Readonly<Record<string, unknown>> = {},
): AnyObject {
  const { apiVersion, kind } = type;
  const { namespace = 'shop', ...others } = meta;
  const metadata = {
    ...('namespace' in meta && meta.namespace === undefined ? {} : { namespace }),
    name,
    ...others,
  };
  return { apiVersion, kind, metadata, ...rest };
}

export function configMap(name: string, resourceVersion: string, meta: Meta = {}): AnyObject {
  return anObject(CONFIG_MAP, name, { uid: `uid-${name}`, resourceVersion, ...meta });
}

export function widget(
  name: string,
  meta: Meta = {},
  status?: object,
): AnyObject & CustomResource<{ size: number }> {
  const cr = anObject(WIDGET, name, { uid: `uid-${name}`, resourceVersion: '1', generation: 1, ...meta });
  return { ...cr, spec: { size: 1 }, ...(status && { status }) };
}

/** Planned ConfigMap: what names a live one is left out. */
export const child = (name: string, data?: object): AnyObject =>
  anObject(CONFIG_MAP, name, {}, data && { data });

/** Step of a plan that applies it as a child of a Widget. */
export const apply = (name: string, owner = 'web'): OwnStep => ({
  do: 'own',
  object: child(name),
  fieldManager: MANAGER,
  owner: ownedBy(owner),
});

export function ownedBy(name: string, uid = `uid-${name}`): OwnerReference {
  const { apiVersion, kind } = WIDGET;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

export function applied(manager: string, fieldsV1: object, apiVersion = 'v1', subresource?: string): object {
  return {
    manager,
    operation: 'Apply',
    apiVersion,
    time: '2026-11-21T12:41:04Z',
    fieldsType: 'FieldsV1',
    fieldsV1,
    ...(subresource !== undefined && { subresource }),
  };
}

/** An answer that reports a failure. */
export function failure(
  code: number,
  reason: string | undefined,
  message: string,
  details?: object,
): ApiResponse & { body: object } {
  return {
    status: code,
    body: {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason !== undefined && { reason }),
      ...(details && { details }),
      code,
    },
  };
}

export function fieldConflict(
  manager = 'kubectl-edit',
  field = '.spec.replicas',
): ApiResponse & { body: object } {
  return failure(409, 'Conflict', `Apply failed with 1 conflict: conflict with "${manager}": ${field}`, {
    causes: [{ reason: 'FieldManagerConflict', message: `conflict with "${manager}"`, field }],
  });
}

export interface LogLine {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A logger that keeps its lines. */
export function recordingLogger(lines: LogLine[], base: Readonly<Record<string, unknown>> = {}): Logger {
  const at =
    (level: string) =>
    (fields: unknown, message?: string): void => {
      if (typeof fields === 'string') lines.push({ level, fields: base, message: fields });
      else lines.push({ level, fields: { ...base, ...(fields as object) }, message: message ?? '' });
    };
  return {
    ...silentLogger,
    trace: at('trace'),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields: Readonly<Record<string, unknown>>) => recordingLogger(lines, { ...base, ...fields }),
    isLevelEnabled: () => true,
  };
}
