import { kindOf } from '../../author/define-kind.js';
import type { Finding, Kind } from '../../contract/kind.js';
import { lazily } from '../common.js';
import { JobWatcherController } from './controller.js';
import { flags, settingsOf } from './settings.js';
import type { JobWatcherSpec } from './spec.js';
import { attempt, checkPatterns } from './watcher.js';

/** JobWatcher of `batch.my.github.com/v1`: deletes finished Jobs some time after they have finished. */
export const jobWatcher = lazily((): Kind => {
  const kind = kindOf(new URL('../../../crds/jobwatchers.batch.my.github.com.yaml', import.meta.url));
  return {
    ...kind,
    flags,
    rendering: {
      together: (resources) => ({
        manifests: [],
        findings: resources.map((of): Finding => {
          const refused = attempt(() => {
            checkPatterns(of.spec as JobWatcherSpec);
          });
          if (refused) return { level: 'error', of, path: refused.path, message: refused.message };
          return {
            level: 'note',
            of,
            message: 'a JobWatcher makes no objects: it deletes Jobs in a cluster',
          };
        }),
      }),
    },
    controllers: (context) => [new JobWatcherController(kind.type, settingsOf(context))],
  };
});
