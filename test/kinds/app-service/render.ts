import { App, Chart, Yaml } from 'cdk8s';
import { expect } from 'vitest';
import type { V1Deployment, V1Service } from '@kubernetes/client-node';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { AppService, type AppServiceProps } from '../../../src/kinds/app-service/construct.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';

export interface Rendered {
  readonly objects: readonly AnyObject[];
  readonly yaml: string;
  /** @throws if it wasn't rendered */
  readonly deployment: V1Deployment;
  readonly service: V1Service | undefined;
}

/** The objects of an AppService, named `web` unless the metadata says otherwise. */
export function render(
  spec: AppServiceSpec,
  metadata: AppServiceProps['metadata'] = { name: 'web' },
): Rendered {
  const chart = new Chart(new App(), 'test');
  new AppService(chart, 'AppService', { metadata, spec });
  const objects = chart.toJson() as AnyObject[];
  const deployment = objects.find(({ kind }) => kind === 'Deployment');
  if (!deployment) throw new Error('no Deployment was rendered');
  const service = objects.find(({ kind }) => kind === 'Service');
  return {
    objects,
    yaml: Yaml.stringify(...objects),
    deployment: deployment as unknown as V1Deployment,
    service: service as unknown as V1Service | undefined,
  };
}

/** The only container of a rendered AppService. */
export function containerOf({ deployment }: Rendered) {
  const [container] = deployment.spec!.template.spec!.containers;
  return container!;
}

/** Why an AppService isn't rendered: an error that waits for a change. */
export function refusal(spec: AppServiceSpec, name = 'web'): OperatorError {
  try {
    render(spec, { name });
  } catch (error) {
    expect(error).toBeInstanceOf(OperatorError);
    expect(error).toHaveProperty('retry', 'onChange');
    return error as OperatorError;
  }
  throw new Error('it was rendered');
}
