import type { Kind } from '../contract/kind.js';
import { appService } from './app-service/kind.js';
import { jobWatcher } from './job-watcher/kind.js';
import { streamIngress } from './stream-ingress/kind.js';

/** The kinds that come with the project. */
export const builtInKinds: readonly Kind[] = [appService, streamIngress, jobWatcher];
