import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { decorate } from '../../src/author/decorate.js';

const SERVICE = { apiVersion: 'v1', kind: 'Service' };
const made = (props: object): unknown =>
  decorate({
    ...{ name: 'services', apiVersion: 'apps/v1', kind: 'StatefulSet', annotation: 'example.com/ports' },
    ...{ construct: Construct, children: [SERVICE], ...props },
  });

test.each<[message: string, props: object]>([
  ['name: write lower-case letters', { name: 'Services' }],
  ['every StatefulSet would be chosen; give selector or annotation', { annotation: undefined }],
  ['selector: "a=(" is no label selector; write team=web,tier!=db', { selector: 'a=(' }],
  ['selector: "" is no label selector', { selector: '' }],
  ['unknown option annotations; did you mean annotation?', { annotations: {} }],
  ['children[0]: unknown option namespaces', { children: [{ ...SERVICE, namespaces: ['a'] }] }],
  ['children[0]: apps/v1 has no Service', { children: [{ ...SERVICE, apiVersion: 'apps/v1' }] }],
  [
    'children: type StatefulSet.apps is the decorated one; leave it out',
    { children: [{ apiVersion: 'apps/v1', kind: 'StatefulSet' }] },
  ],
])('refuses: %s', (message, props) => {
  expect(() => made(props)).toThrow(message);
});
