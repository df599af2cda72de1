export { default } from 'vitepress/theme';
import './style.css';
