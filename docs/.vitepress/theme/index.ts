// The default theme with the fonts of the reader's machine.
import Theme from "vitepress/theme-without-fonts";

export default Theme;
