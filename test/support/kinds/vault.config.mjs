// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { checksumAnnotations, defineCrd, defineKind, selectorLabels } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Vault', description: 'A Deployment with generated values.' },
  spec: /** @type {const} */ ({ type: 'object', properties: { image: { type: 'string' } } }),
});

export const values = { password: { length: 24 }, key: { bytes: 32 } };

/** Renders a Deployment whose Pods get the password from the Secret, and are replaced when it changes. */
class Vault extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { generated: typeof values }>} props
   */
  constructor(
    scope,
    id,
    { metadata: { name }, spec: { image = 'example.com/vault:1' }, generated, ...read },
  ) {
    super(scope, id);
    const labels = selectorLabels(crd, name);
    const env = [{ name: 'PASSWORD', valueFrom: { secretKeyRef: generated.keys.password } }];
    const containers = [{ name: 'vault', image, imagePullPolicy: 'IfNotPresent', env }];
    const metadata = {
      labels,
      annotations: checksumAnnotations({ generated, .../** @type {any} */ (read).references }),
    };
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: { replicas: 0, selector: { matchLabels: labels }, template: { metadata, spec: { containers } } },
    });
  }
}

/**
 * @param {Record<string, import('cdk8s-reconstruct').GeneratedValue>} generated
 * @param {readonly import('cdk8s-reconstruct').ChildTypeProps[]} others types of children that it never renders
 * @param {Record<string, import('cdk8s-reconstruct').ReferenceProps<object>>} [references] for which its Pods are replaced, too
 */
export const vault = (generated, others = [], references) =>
  defineKind({
    ...{ crd, generated, ...(references && { references }), construct: /** @type {any} */ (Vault) },
    children: [{ apiVersion: 'apps/v1', kind: 'Deployment' }, ...others],
  });

export default { kinds: [vault(values)] };
