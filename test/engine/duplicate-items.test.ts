import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { itemsInTheWay } from '../../src/engine/managed-fields.js';
import { anObject, applied, DEPLOYMENT, SERVICE } from './support/builders.js';
import { recordedFields } from './support/recorded-fields.js';

type Port = Readonly<Record<string, unknown>>;

function service(ports: readonly Port[]): AnyObject {
  const object = anObject(SERVICE, 'web', {}, { spec: { ports } });
  const managedFields = [applied('kubectl-create', recordedFields(object))];
  return { ...object, metadata: { ...object.metadata, managedFields } as AnyObject['metadata'] };
}

const http = { name: 'http', port: 80, protocol: 'TCP' };
const metrics = { name: 'metrics', port: 9090, protocol: 'TCP' };
const path = (port: number): string[] => ['f:spec', 'f:ports', `k:{"port":${String(port)},"protocol":"TCP"}`];

describe('itemsInTheWay', () => {
  it('finds the item that has the value, and is not one of ours', () => {
    const wanted = service([{ ...http, port: 81 }]);
    expect(itemsInTheWay(service([http, metrics]), wanted, 'spec.ports[1].name', 'http')).toEqual([path(80)]);
  });

  it('leaves alone what the intent names itself', () => {
    expect(itemsInTheWay(service([http]), service([http]), 'spec.ports[1].name', 'http')).toEqual([]);
  });

  it('finds numbers too', () => {
    const live = service([{ ...http, nodePort: 30_080 }]);
    const wanted = service([{ ...http, port: 81, nodePort: 30_080 }]);
    expect(itemsInTheWay(live, wanted, 'spec.ports[0].nodePort', 30_080)).toEqual([path(80)]);
  });

  it('looks into the items that are ours, where lists are in lists', () => {
    const deployment = (containers: object[]): AnyObject => {
      const object = anObject(DEPLOYMENT, 'web', {}, { spec: { template: { spec: { containers } } } });
      const managedFields = [applied('kubectl-create', recordedFields(object))];
      return { ...object, metadata: { ...object.metadata, managedFields } as AnyObject['metadata'] };
    };
    const port = { name: 'http', containerPort: 80, protocol: 'TCP' };
    const live = deployment(['web', 'sidecar'].map((name) => ({ name, ports: [port] })));
    const wanted = deployment([{ name: 'web', ports: [{ ...port, containerPort: 81 }] }]);
    expect(itemsInTheWay(live, wanted, 'spec.template.spec.containers[0].ports[1].name', 'http')).toEqual([
      [
        ...['f:spec', 'f:template', 'f:spec', 'f:containers', 'k:{"name":"web"}'],
        ...['f:ports', 'k:{"containerPort":80,"protocol":"TCP"}'],
      ],
    ]);
  });

  it.each(['metadata.name', 'spec.nothing[0].name', 'spec.ports', ''])('finds nothing at "%s"', (field) => {
    expect(itemsInTheWay(service([http]), service([metrics]), field, 'http')).toEqual([]);
  });
});
