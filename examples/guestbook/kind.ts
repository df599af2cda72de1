import { defineKind, podsOf } from 'cdk8s-reconstruct';
import { Guestbook } from './construct.ts';
import { crd } from './crd.ts';

export const kind = defineKind({
  crd,
  construct: Guestbook,
  children: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
  related: [podsOf(crd)],
});
