"""First names: which words of a conversation are replaced as names, and by which other names."""

_KNOWN = """
    Aaron Abby Abigail Adam Adrian Alan Alejandro Alex Alexander Alexandra Alexis Alice Alicia Allison Amanda
    Amber Amy Ana Andrea Andrew Andy Angela Anita Ann Anna Anne Anthony Antonio Ashley Audrey Barbara Becky
    Bella Ben Benjamin Beth Betty Bill Bob Brandon Brenda Brian Brittany Bruce Bryan Calvin Carl Carla Carlos
    Carmen Carol Caroline Catherine Charles Charlie Charlotte Chloe Chris Christina Christopher Cindy Claire
    Cody Connor Cynthia Dan Daniel Dave David Dawn Deb Deborah Debra Dennis Diana Diane Donald Donna Dorothy
    Doug Dylan Edward Eileen Elena Eli Elizabeth Ella Ellen Emily Emma Eric Erica Erin Ethan Eva Evan Evelyn
    Fiona Frank Gary George Gina Gloria Greg Gregory Hannah Harold Heather Helen Henry Ian Irene Isaac Isabella
    Jack Jacob Jake James Jamie Jane Janet Janice Jason Jay Jean Jeff Jeffrey Jen Jenna Jennifer Jenny Jeremy
    Jerry Jesse Jessica Jill Jim Joan Joanna Jocelyn Joe Joel John Johnny Jolene Jon Jonathan Jordan Joseph Josh
    Joshua Joyce Juan Judy Julia Julian Julie Justin Karen Karl Kate Katherine Kathleen Katie Keith Kelly Ken
    Kenneth Kevin Kim Kimberly Kyle Larry Laura Lauren Leah Leo Leon Leonard Linda Lisa Logan Lori Louis Lucas
    Lucy Luis Luke Luna Lydia Lynn Madison Marcus Margaret Maria Marie Mark Martha Martin Mary Matt Matthew Max
    Megan Melanie Melissa Mia Michael Michelle Miguel Mike Monica Nancy Naomi Natalie Nate Nathan Nicholas Nick
    Nicole Noah Nora Olivia Oscar Pamela Patricia Patrick Paul Pedro Peter Philip Rachel Ralph Randy Ray Raymond
    Rebecca Richard Rick Rob Robert Roger Ron Ronald Roy Russell Ruth Ryan Sam Samantha Samuel Sandra Sara Sarah
    Scott Sean Sharon Shawn Shirley Simon Sofia Sophia Stella Stephanie Stephen Steve Steven Stuart Susan Susie
    Tara Ted Teresa Theresa Thomas Tiffany Tim Timothy Tina Todd Tom Tony Tracy Tyler Vanessa Vera Victor
    Victoria Vincent Virginia Walter Wanda Wayne Wendy William Zach Zachary Zoe
"""
_OTHERS = """
    Agnes Albert Alma Ambrose Anselm Astrid Aurelia Basil Beatrix Benedict Bertha Blanche Boris Bruno Casimir
    Cecilia Clemens Constance Cordelia Cornelius Cyril Damian Delphine Desmond Dmitri Edgar Edith Edmund Elias
    Elsa Emil Erwin Esther Eugene Ferdinand Flora Florian Frieda Gabriel Gerda Gideon Gilbert Greta Gustav
    Harriet Hedwig Hilda Horace Hubert Hugo Ida Ignatius Ingrid Isolde Ivo Jasper Johanna Joachim Judith Klara
    Konrad Lambert Leopold Linus Lothar Ludwig Magda Malcolm Marius Mathilda Maximilian Mildred Minna Mortimer
    Muriel Nadine Nestor Norbert Odette Olga Oswald Otto Ottilie Pascal Paulina Percival Petra Philippa Quentin
    Reinhold Renata Roland Rosalind Rufus Rupert Sabine Seraphina Sibyl Sigmund Silas Sylvester Tabitha Thaddeus
    Theodora Tobias Ulrich Ursula Valentin Veronica Viktor Wilfred Wilhelmina Winifred Wolfgang Xavier Yvette
    Zelda
"""

KNOWN = frozenset(_KNOWN.split())
OTHERS = tuple(_OTHERS.split())
"""They are rare, so that few conversations have them already."""
