import { defineKind } from 'cdk8s-reconstruct';
import { App } from './app.ts';
import { crd } from './crd.ts';

export const app = defineKind({
  crd,
  construct: App,
  children: [
    { apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret' },
    { apiVersion: 'postgresql.cnpg.io/v1', kind: 'Cluster' },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
  ],
});
