import type { Kind } from '../contract/kind.js';
import { appService } from './app-service/kind.js';
import { jobWatcher } from './job-watcher/kind.js';
import { streamIngress } from './stream-ingress/kind.js';

export { AppService } from './app-service/construct.js';
export type { AppServiceProps } from './app-service/construct.js';
export { appServiceIn } from './app-service/kind.js';
export { appService, jobWatcher, streamIngress };

/** Kinds that every command knows, unless the configuration has `builtIn: false`. */
export const builtInKinds: readonly Kind[] = [appService, streamIngress, jobWatcher];
