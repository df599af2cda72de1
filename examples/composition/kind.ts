import { defineKind, type AnyObject } from 'cdk8s-reconstruct';
import { App } from './app.ts';
import { crd } from './crd.ts';

/** `Ready` of a Cluster is False also while it starts, which `phase` says: then it is Unknown here. */
function whileStarting({ status }: AnyObject): { readonly status?: object } {
  const { phase: message = '' } = (status ?? {}) as { readonly phase?: string };
  if (!/^(Setting up primary|Creating a new replica|Waiting for the instances)/.test(message)) return {};
  return { status: { conditions: [{ type: 'Ready', status: 'Unknown', reason: 'Starting', message }] } };
}

export const app = defineKind({
  crd,
  construct: App,
  children: [
    { apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret' },
    { apiVersion: 'postgresql.cnpg.io/v1', kind: 'Cluster', keep: whileStarting },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
  ],
});
