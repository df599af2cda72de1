import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import type { AnyObject } from 'cdk8s-reconstruct';
import { sweepCommand } from 'cdk8s-reconstruct/testing';
import { database } from './kinds.ts';

const [, shop] = Yaml.load(join(import.meta.dirname, 'sample.yaml')) as [AnyObject, AnyObject];
await sweepCommand(database, () => Promise.resolve([shop, { ...shop, spec: {} }]));
