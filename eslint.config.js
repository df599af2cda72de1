import importX from 'eslint-plugin-import-x';
import tseslint from 'typescript-eslint';

/** Who may import whom inside src/ (docs/decisions/0002-layers.md). A layer always may import itself. */
const layers = {
  contract: [],
  telemetry: [],
  kinds: ['contract', 'telemetry'],
  synth: ['contract', 'telemetry'],
  engine: ['contract', 'telemetry'],
  install: ['contract', 'telemetry'],
};

const layerZones = Object.entries(layers).flatMap(([layer, allowed]) => ({
  target: `./src/${layer}`,
  from: './src',
  except: [layer, ...allowed].map((name) => `./${name}`),
  message: `src/${layer} may import only ${['itself', ...allowed].join(', ')}`,
}));

export default tseslint.config(
  { ignores: ['lib/', 'dist/', 'imports/', 'node_modules/'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    plugins: { 'import-x': importX },
    settings: {
      'import-x/resolver-next': [
        importX.createNodeResolver({ extensionAlias: { '.js': ['.ts', '.js'] }, extensions: ['.ts', '.js'] }),
      ],
    },
    rules: {
      'import-x/no-restricted-paths': ['error', { zones: layerZones }],
      'import-x/no-cycle': 'error',
      'import-x/no-default-export': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
    },
  },
  {
    files: ['vitest.config.ts', 'eslint.config.js', '**/*.mjs'],
    rules: { 'import-x/no-default-export': 'off' },
  },
  { files: ['**/*.js', '**/*.mjs'], ...tseslint.configs.disableTypeChecked },
  {
    files: ['test/**'],
    rules: { '@typescript-eslint/no-non-null-assertion': 'off' },
  },
);
